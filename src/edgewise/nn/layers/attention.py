"""Attention guided by edge channels, EGNN(A)."""

from dataclasses import dataclass
from math import sqrt
from typing import Any, TypeGuard

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

from edgewise.core.declarations import ModelSettings
from edgewise.core.errors import EdgewiseError
from edgewise.graphs.features import Features
from edgewise.graphs.sampled_edges import SampledLayer
from edgewise.kernels import backend
from edgewise.kernels.activation import drop
from edgewise.kernels.attention import attention_rows, balance_columns
from edgewise.kernels.dropout import draw_key, drop_twice
from edgewise.kernels.hub_attention import hub_attention
from edgewise.kernels.products import product
from edgewise.kernels.scores import entry_scores
from edgewise.nn.eager import eager
from edgewise.nn.layers.base import ChannelLayer, mapped
from edgewise.nn.layers.layer import LayerShape
from edgewise.nn.normalization import symmetric_values
from edgewise.nn.operators import DoublyStochastic, Operator, SparseOperator

# Forming E costs its two-step paths, walking along its factor the links times the width. Measured
# on Cora, CiteSeer and PubMed, with 6 to 14 paths a link: at 16 columns and more they are quicker
# formed, by a factor of 1.4 to 3.7 (1.9 to 2.5 with dropout at 64 columns), at 6 or 7 there is less
# between the two, at 3 they are quicker walked; at 6 or 7 columns, 48 and 91 paths are quicker
# walked.
FORMED_PATHS = 0.9


@dataclass(frozen=True, eq=False)
class SampledAttention:
    """The edges of one layer of sampled neighbours, and those of the layers that follow it."""

    here: SparseOperator
    later: tuple[SparseOperator, ...] = ()


class ChannelAttention(ChannelLayer):
    r"""Attention guided by every edge channel: EGNN(A) of `Gong and Cheng (2019)
    <https://arxiv.org/abs/1809.02709>`_.

    .. math::
        X' = \Big\Vert_{p=1}^{P} \alpha_{\cdot\cdot p} \, X W + b, \qquad
        \alpha_{\cdot\cdot p} = \mathrm{DS}(\hat\alpha_{\cdot\cdot p}), \qquad
        \hat\alpha_{ijp} = \exp\big(\mathrm{L}(a^\top [W x_i \Vert W x_j])\big) \, E_{ijp}

    :math:`E` are the normalised edges on the way in and L is LeakyReLU. With
    ``return_edges=True`` the layer also gives :math:`\alpha`, the adapted edges, for the next
    layer to use in place of :math:`E`:

        >>> first = ChannelAttention(8, 4, edge_channels=3)
        >>> second = ChannelAttention(12, 2, edge_channels=3)
        >>> x, edge_index, edge_attr = torch.randn(3, 8), torch.tensor([[0], [1]]), torch.ones(1, 3)
        >>> h, edges = first(x, edge_index, edge_attr, return_edges=True)
        >>> second.propagate(h, edges).shape
        torch.Size([3, 6])

    Doubly stochastic :math:`\alpha` reaches twice as far as :math:`E`. It is formed if it is
    asked for, or if the graph is so thin that this is quicker; otherwise, on the CPU, the layer
    walks along the factor of :math:`E` at a cost that is linear in its entries, with the same
    result.

    Args:
        in_channels: Width :math:`F` of a node on the way in.
        out_channels: Width :math:`F'` of a node per edge channel and head on the way out.
        edge_channels: Number :math:`P` of edge channels on the way in.
        normalize: ``"doubly_stochastic"``, ``"row"`` (as GAT) or ``"symmetric"``.
        concat: Concatenate channels and heads; if False they are averaged.
        heads: Number :math:`H` of independent attentions; they multiply the channels.
        dropout: Probability of dropping a coefficient in training. Doubly stochastic
            coefficients are a product of two factors; entries of each are dropped with masks of
            their own, so that the product keeps its expectation. If the adapted edges are asked
            for, these are entries of the factor of :math:`\alpha`; if not, they are entries of
            the factor of :math:`E`, whichever way the layer is computed.
        negative_slope: Slope of LeakyReLU below zero.
        bias: Whether to learn :math:`b`.
        flow: ``"source_to_target"`` as in PyG, or ``"target_to_source"``.
        materialize: True for the slow reference, which forms :math:`E` in plain torch; False
            for the walk; by default whichever is quicker of the walk and the formed edges.
            Scores far apart and slopes outside 0 to 1 need the formed edges all the same.

    Parameters of the layer: ``weight`` ``[F, H * F']``, ``attention`` ``[2, H * F']`` (target,
    source), ``bias``.
    """

    settings = frozenset({"normalize", "adapt", "heads", "root_weight"})
    adapts = False  # in a network, whether the next layer takes the adapted edges

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        edge_channels: int = 1,
        normalize: str = "doubly_stochastic",
        concat: bool = True,
        *,
        heads: int = 1,
        dropout: float = 0.0,
        negative_slope: float = 0.2,
        bias: bool = True,
        flow: str = "source_to_target",
        materialize: bool | None = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, edge_channels, normalize, concat, heads, bias, flow
        )
        if normalize == "gcn":
            raise EdgewiseError(
                "attention is normalised by doubly_stochastic, row or symmetric; "
                "normalize='gcn' is for convolution"
            )
        if not 0 <= dropout < 1:
            raise EdgewiseError(f"dropout={dropout} must be at least 0 and below 1")
        self.dropout, self.negative_slope = dropout, negative_slope
        self.materialize = materialize
        self.attention = nn.Parameter(torch.empty(2, heads * out_channels))
        self.reset_parameters()

    @classmethod
    def build(cls, shape: LayerShape, settings: ModelSettings) -> "ChannelAttention":
        adapt = settings.adapt and settings.depth > 1
        if adapt and settings.heads > 1:
            raise EdgewiseError(
                "adapted edges have one set of channels per head, which would multiply from "
                "layer to layer; set heads = 1 or adapt = false"
            )
        layer = cls(
            *(shape.in_channels, shape.out_channels, shape.edge_channels, settings.normalize),
            concat=not shape.is_head,
            heads=1 if shape.is_head else settings.heads,
            dropout=settings.dropout,
        )
        layer.adapts = adapt and not shape.last
        return layer

    @property
    def drops_edges(self) -> bool:
        return self.dropout > 0

    @classmethod
    def hops(cls, settings: ModelSettings) -> int:
        if settings.normalize != "row":
            raise EdgewiseError(
                f"attention with normalize = {settings.normalize} divides by sums over edges that "
                "are not sampled; set normalize = row, or leave out neighbors"
            )
        return 1

    def prepare_sampled(self, edges: SampledLayer) -> SampledAttention:
        layers = [edges, *(edges.later() if self.adapts else [])]
        here, *later = (self.sampled_operator(layer) for layer in layers)
        return SampledAttention(here, tuple(later))

    def sampled_operator(self, edges: SampledLayer) -> SparseOperator:
        operator = super().sampled_operator(edges)
        assert isinstance(operator, SparseOperator)
        return operator.repeat_channels(self.heads)

    def project(self, x: Features) -> Float[Tensor, "nodes width"]:
        h, target, source = self._with_scores(x)
        return torch.cat([h.flatten(1), target, source], dim=1)

    def gather(
        self, projected: Tensor, edges: SampledAttention, hop: int
    ) -> Float[Tensor, "rows out"]:
        h, target, source = self._unpacked(projected)
        return self._along(h, self._adapted(edges.here, target, source))

    @property
    def hands_edges_on(self) -> bool:
        return self.adapts

    def hand_on(self, projected: Tensor, edges: SampledAttention) -> SampledAttention:
        _, target, source = self._unpacked(projected)
        return SampledAttention(self._row_adapted(edges.here, target, source))

    def _unpacked(self, projected: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        width = self.heads * self.out_channels
        h, target, source = projected.split([width, self.heads, self.heads], dim=1)
        return h.unflatten(1, (self.heads, self.out_channels)), target, source

    def _row_adapted(self, edges: SparseOperator, target: Tensor, source: Tensor) -> SparseOperator:
        nodes = edges.pattern.num_nodes
        adapted = self._adapted(edges, target[:nodes], source[:nodes])
        assert isinstance(adapted, SparseOperator)
        return adapted

    def _advance_sampled(
        self, x: Features, edges: SampledAttention
    ) -> tuple[Float[Tensor, "rows out"], SampledAttention | None]:
        h, target, source = self._scored(x, edges.here)
        out = self._along(h, self._adapted(edges.here, target, source))
        if not self.adapts:
            return out, None
        # The sums that coefficients are divided by cancel out when the next layer divides again, so
        # it does not matter that they are sums over the neighbours that it has drawn.
        here, *later = (self._row_adapted(layer, target, source) for layer in edges.later)
        return out, SampledAttention(here, tuple(later))

    def advance(
        self, x: Features, edges: Operator | SampledAttention
    ) -> tuple[Float[Tensor, "rows out"], Operator | SampledAttention | None]:
        if isinstance(edges, SampledAttention):
            return self._advance_sampled(x, edges)
        if self.adapts:
            return self.adapt_unbiased(x, edges)
        return self.unbiased(x, edges), None

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.xavier_uniform_(self.attention)

    def operator(self, edge_index: Tensor, edge_attr: Tensor | None, num_nodes: int) -> Operator:
        return super().operator(edge_index, edge_attr, num_nodes).repeat_channels(self.heads)

    @eager
    def forward(
        self,
        x: Features,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        *,
        return_edges: bool = False,
    ) -> Any:
        """``[nodes, P * H * F']``; with ``return_edges`` also the adapted edges."""
        edges = self.operator(edge_index, edge_attr, len(x))
        return self.adapt(x, edges) if return_edges else self.propagate(x, edges)

    def propagate(self, x: Features, edges: Operator) -> Float[Tensor, "nodes out"]:
        """The layer along edges that are an operator already."""
        return self.add_bias(self.unbiased(x, edges))

    def unbiased(self, x: Features, edges: Operator) -> Float[Tensor, "nodes out"]:
        """As :meth:`propagate`, without the bias."""
        h, target, source = self._scored(x, edges)
        dropout = self.dropout if self.training else 0.0
        if self._is_factored(edges):
            walks = self._walks(edges)
            if walks or dropout > 0:
                out = hub_attention(
                    edges.factor.pattern,
                    edges.factor.value,
                    target,
                    source,
                    h,
                    slope=self.negative_slope,
                    dropout=dropout,
                    key=draw_key() if dropout > 0 else 0,
                    formed=None if walks else (edges.formed.pattern, edges.formed.value),
                    by_hub=edges.factor.values_by_hub,
                    materialize=bool(self.materialize),
                )
                return self.joined(out)
        return self._along(h, self._adapted(edges, target, source))

    def _is_factored(self, edges: Operator) -> TypeGuard[DoublyStochastic]:
        """Whether there are links of ``E = B B^T`` to walk along, and to drop."""
        # Where lone self-loops are not stored there is no dropout, and what is left is small.
        return (
            self.normalize == "doubly_stochastic"
            and isinstance(edges, DoublyStochastic)
            and not edges.factor.pattern.lone_loops
        )

    def _walks(self, edges: DoublyStochastic) -> bool:
        """Whether to leave ``E`` unformed: a rule about speed, which changes no result."""
        if self.materialize is not None:
            return True
        if not backend.compiled(edges.factor.value):
            return False
        pattern = edges.factor.pattern
        return pattern.paths > FORMED_PATHS * pattern.num_entries * self.out_channels

    def adapt(self, x: Features, edges: Operator) -> tuple[Float[Tensor, "nodes out"], Operator]:
        """As :meth:`propagate`, and the adapted edges beside it."""
        out, adapted = self.adapt_unbiased(x, edges)
        return self.add_bias(out), adapted

    def adapt_unbiased(
        self, x: Features, edges: Operator
    ) -> tuple[Float[Tensor, "nodes out"], Operator]:
        """As :meth:`adapt`, without the bias."""
        h, target, source = self._scored(x, edges)
        adapted = self._adapted(edges, target, source)
        return self._along(h, adapted), adapted

    def _scored(self, x: Features, edges: Operator) -> tuple[Tensor, Tensor, Tensor]:
        self.check(x, edges, self.edge_channels * self.heads)
        return self._with_scores(x)

    def _with_scores(self, x: Features) -> tuple[Tensor, Tensor, Tensor]:
        flat = mapped(x, self.weight)
        h = flat.unflatten(1, (self.heads, self.out_channels))
        if self.heads == 1:  # one product with a narrow matrix, which BLAS is quick at
            target, source = linear(flat, self.attention).split(1, dim=1)
            return h, target, source
        target, source = torch.einsum(
            "nhf,shf->snh", h, self.attention.unflatten(1, (self.heads, self.out_channels))
        )
        return h, target, source

    def _adapted(self, edges: Operator, target: Tensor, source: Tensor) -> Operator:
        formed = edges.formed
        pattern, slope = formed.pattern, self.negative_slope
        if self.normalize == "symmetric":
            score = entry_scores(pattern, target, source, slope)
            return SparseOperator(pattern, symmetric_values(pattern, formed.value, score))
        weight = attention_rows(pattern, formed.value, target, source, slope)
        if self.normalize == "row":
            return SparseOperator(pattern, weight, formed.rows)
        return DoublyStochastic(SparseOperator(pattern, balance_columns(pattern, weight)))

    def _along(
        self, h: Float[Tensor, "nodes heads width"], edges: Operator
    ) -> Float[Tensor, "rows out"]:
        if isinstance(edges, DoublyStochastic):
            pattern, value = edges.factor.pattern, edges.factor.value
            first, second = self._dropped_twice(value)
            pooled = product(pattern, second, h, transposed=True)
            return self.joined(product(pattern, first, pooled))
        value = edges.value
        if self.training and self.dropout > 0:
            value = drop(value, self.dropout, draw_key())
        return self.joined(product(edges.pattern, value, h, rows=edges.rows))

    def _dropped_twice(self, value: Float[Tensor, " entries"]) -> tuple[Tensor, Tensor]:
        """``value`` under two independent masks, which together drop what was asked for."""
        if not self.training or self.dropout == 0:
            return value, value
        return drop_twice(value, 1 - sqrt(1 - self.dropout), draw_key())
