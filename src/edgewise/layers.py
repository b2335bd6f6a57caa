"""Learned layers. A layer normalises its edges, then mixes nodes along them.

Both follow PyG: ``conv(x, edge_index, edge_attr)`` takes raw channels, and messages flow from
``edge_index[0]`` to ``edge_index[1]``. A model that uses the same edges again and again builds
the operator once with ``conv.operator(...)`` and calls ``conv.propagate(x, operator)``.
"""

from math import sqrt
from typing import Any, TypeGuard

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

from edgewise.channels import add_self_loops
from edgewise.errors import EdgewiseError
from edgewise.features import SparseFeatures
from edgewise.kernels.activation import drop
from edgewise.kernels.attention import attention_rows, balance_columns
from edgewise.kernels.dropout import draw_key, drop_twice
from edgewise.kernels.hub_attention import hub_attention
from edgewise.kernels.products import product
from edgewise.kernels.scores import entry_scores
from edgewise.normalization import NORMALIZATIONS, symmetric_values
from edgewise.operators import DoublyStochastic, Operator, SparseOperator

Features = Tensor | SparseFeatures

# Forming E costs its two-step paths, walking past its hubs the links times the width. Measured on
# Cora, CiteSeer and PubMed, with 6 to 14 paths a link: at 16 columns and more they are quicker
# formed, by a factor of 1.4 to 3.7, at 6 or 7 there is less between the two, at 3 they are quicker
# walked; at 6 or 7 columns, 48 and 91 paths are quicker walked.
FORMED_PATHS = 0.9


def _mapped(x: Features, weight: Float[Tensor, "features out"]) -> Float[Tensor, "nodes out"]:
    """``x @ weight``; for a dense ``x`` in the order that BLAS is quick at for narrow weights."""
    return x @ weight if isinstance(x, SparseFeatures) else linear(x, weight.t().contiguous())


class _ChannelLayer(nn.Module):
    """What both layers share: the way from raw channels to an operator, and the output's form."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        edge_channels: int,
        normalize: str,
        concat: bool,
        heads: int,
        bias: bool,
        flow: str,
    ) -> None:
        super().__init__()
        if normalize not in NORMALIZATIONS:
            raise EdgewiseError(
                f"normalize={normalize!r} is not known; choose one of {', '.join(NORMALIZATIONS)}"
            )
        if flow not in ("source_to_target", "target_to_source"):
            raise EdgewiseError(
                f"flow={flow!r} is not known; choose source_to_target or target_to_source"
            )
        for name, width in (
            ("in_channels", in_channels),
            ("out_channels", out_channels),
            ("edge_channels", edge_channels),
            ("heads", heads),
        ):
            if width < 1:
                raise EdgewiseError(f"{name}={width} must be at least 1")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.edge_channels, self.heads = edge_channels, heads
        self.normalize, self.concat, self.flow = normalize, concat, flow
        self.weight = nn.Parameter(torch.empty(in_channels, heads * out_channels))
        copies = heads * edge_channels if concat else 1
        self.bias = nn.Parameter(torch.empty(copies * out_channels)) if bias else None

    def reset_parameters(self) -> None:
        """Draw new weights (Glorot) and zero the bias."""
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def operator(self, edge_index: Tensor, edge_attr: Tensor | None, num_nodes: int) -> Operator:
        """Raw channels to the operator of this layer: self-loops, direction, normalisation."""
        if edge_attr is None:
            edge_attr = self.weight.new_ones(edge_index.shape[-1:]).unsqueeze(-1)
        edge_attr = edge_attr.unsqueeze(1) if edge_attr.dim() == 1 else edge_attr
        edge_index, edge_attr = add_self_loops(
            edge_index, edge_attr.to(self.weight.dtype), num_nodes
        )
        if edge_attr.size(1) != self.edge_channels:
            raise EdgewiseError(
                f"edge_attr has {edge_attr.size(1)} channel(s), but this layer was made for "
                f"edge_channels={self.edge_channels}"
            )
        if self.flow == "source_to_target":
            edge_index = edge_index.flip(0)  # the target is the row, and rows gather
        return NORMALIZATIONS[self.normalize](edge_index, edge_attr, num_nodes)

    def _check(self, x: Features, edges: Operator, channels: int) -> None:
        if len(x.shape) != 2 or x.shape[1] != self.in_channels:
            raise EdgewiseError(
                f"x has shape {list(x.shape)}, but this layer was made for "
                f"in_channels={self.in_channels}"
            )
        if x.dtype != self.weight.dtype and not torch.is_autocast_enabled(x.device.type):
            given, needed = (str(t).removeprefix("torch.") for t in (x.dtype, self.weight.dtype))
            raise EdgewiseError(
                f"x is {given}, but this layer's weights are {needed}; use x.to(torch.{needed})"
            )
        if edges.shape[0] != len(x) or edges.channels != channels:
            raise EdgewiseError(
                f"the edges join {edges.shape[0]} nodes in {edges.channels} channel(s), but "
                f"there are {len(x)} nodes and this layer works on {channels} channel(s)"
            )

    def _joined(self, out: Float[Tensor, "nodes channels width"]) -> Float[Tensor, "nodes joined"]:
        return out.flatten(1) if self.concat else out.mean(1)

    def biased(self, out: Float[Tensor, "nodes joined"]) -> Float[Tensor, "nodes joined"]:
        """What :meth:`unbiased` gives, with the bias."""
        return out if self.bias is None else out + self.bias

    def extra_repr(self) -> str:
        heads = f", heads={self.heads}" if self.heads > 1 else ""
        return (
            f"{self.in_channels}, {self.out_channels}, edge_channels={self.edge_channels}, "
            f"normalize={self.normalize!r}, concat={self.concat}{heads}"
        )


class ChannelConv(_ChannelLayer):
    r"""Convolution along every edge channel: EGNN(C) of `Gong and Cheng (2019)
    <https://arxiv.org/abs/1809.02709>`_.

    .. math::
        X' = \Big\Vert_{p=1}^{P} E_{\cdot\cdot p} \, X W + b

    :math:`E_{\cdot\cdot p}` is the normalised matrix of channel :math:`p` and :math:`\Vert`
    concatenates, so the output is :math:`P` times as wide as ``out_channels``. Every channel
    gets a self-loop of weight 1 where it has none. No activation: put it in the model.

    Args:
        in_channels: Width :math:`F` of a node on the way in.
        out_channels: Width :math:`F'` of a node per edge channel on the way out.
        edge_channels: Number :math:`P` of edge channels.
        normalize: ``"doubly_stochastic"``, ``"symmetric"``, ``"row"`` or ``"gcn"``.
        concat: Concatenate the channels; if False they are averaged.
        bias: Whether to learn :math:`b`.
        flow: ``"source_to_target"`` as in PyG, or ``"target_to_source"``.

    Shapes:
        ``x`` ``[nodes, F]``, ``edge_index`` ``[2, edges]``, ``edge_attr`` ``[edges, P]`` (or
        ``[edges]``, or left out for ones) to ``[nodes, P * F']``.

    Example:
        >>> conv = ChannelConv(1433, 64, edge_channels=3)
        >>> conv(torch.randn(5, 1433), torch.tensor([[0, 1], [1, 2]]), torch.rand(2, 3)).shape
        torch.Size([5, 192])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        edge_channels: int = 1,
        normalize: str = "doubly_stochastic",
        concat: bool = True,
        *,
        bias: bool = True,
        flow: str = "source_to_target",
    ) -> None:
        super().__init__(in_channels, out_channels, edge_channels, normalize, concat, 1, bias, flow)
        self.reset_parameters()

    def forward(
        self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None
    ) -> Float[Tensor, "nodes out"]:
        return self.propagate(x, self.operator(edge_index, edge_attr, len(x)))

    def propagate(self, x: Features, edges: Operator) -> Float[Tensor, "nodes out"]:
        """The layer along edges that are an operator already."""
        return self.biased(self.unbiased(x, edges))

    def unbiased(self, x: Features, edges: Operator) -> Float[Tensor, "nodes out"]:
        """As :meth:`propagate`, without the bias."""
        self._check(x, edges, self.edge_channels)
        h = _mapped(x, self.weight)
        return self._joined(edges @ h) if self.concat else edges.mean(h)


class ChannelAttention(_ChannelLayer):
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
            coefficients are a product of two factors; the entries of each are dropped so that
            the product keeps its expectation. Where the layer walks, these are entries of the
            factor of :math:`E`, else of :math:`\alpha`.
        negative_slope: Slope of LeakyReLU below zero.
        bias: Whether to learn :math:`b`.
        flow: ``"source_to_target"`` as in PyG, or ``"target_to_source"``.
        materialize: True for the slow reference, which forms :math:`E` in plain torch; False
            for the walk; by default whichever is quicker of the walk and the formed edges.
            Scores far apart and slopes outside 0 to 1 need the formed edges all the same.

    Parameters of the layer: ``weight`` ``[F, H * F']``, ``attention`` ``[2, H * F']`` (target,
    source), ``bias``.
    """

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

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.xavier_uniform_(self.attention)

    def operator(self, edge_index: Tensor, edge_attr: Tensor | None, num_nodes: int) -> Operator:
        return super().operator(edge_index, edge_attr, num_nodes).repeat_channels(self.heads)

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
        return self.biased(self.unbiased(x, edges))

    def unbiased(self, x: Features, edges: Operator) -> Float[Tensor, "nodes out"]:
        """As :meth:`propagate`, without the bias."""
        h, target, source = self._scored(x, edges)
        if self.normalize == "doubly_stochastic" and self._leaves_unformed(edges):
            p = self.dropout if self.training else 0.0
            out = hub_attention(
                edges.factor.pattern,
                edges.factor.value,
                target,
                source,
                h,
                slope=self.negative_slope,
                dropout=p,
                key=draw_key() if p > 0 else 0,
                materialize=bool(self.materialize),
            )
            return self._joined(out)
        return self._along(h, self._adapted(edges, target, source))

    def _leaves_unformed(self, edges: Operator) -> TypeGuard[DoublyStochastic]:
        """Whether to leave the way along these edges to :func:`hub_attention`."""
        # Few are joined where lone self-loops are left out, and what is small is quicker formed.
        if not isinstance(edges, DoublyStochastic) or edges.factor.pattern.lone_loops:
            return False
        if self.materialize is not None:
            return True
        pattern = edges.factor.pattern
        return pattern.paths > FORMED_PATHS * pattern.num_entries * self.out_channels

    def adapt(self, x: Features, edges: Operator) -> tuple[Float[Tensor, "nodes out"], Operator]:
        """As :meth:`propagate`, and the adapted edges beside it."""
        out, adapted = self.adapt_unbiased(x, edges)
        return self.biased(out), adapted

    def adapt_unbiased(
        self, x: Features, edges: Operator
    ) -> tuple[Float[Tensor, "nodes out"], Operator]:
        """As :meth:`adapt`, without the bias."""
        h, target, source = self._scored(x, edges)
        adapted = self._adapted(edges, target, source)
        return self._along(h, adapted), adapted

    def _scored(self, x: Features, edges: Operator) -> tuple[Tensor, Tensor, Tensor]:
        self._check(x, edges, self.edge_channels * self.heads)
        h = _mapped(x, self.weight).unflatten(1, (self.heads, self.out_channels))
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
            return SparseOperator(pattern, weight)
        return DoublyStochastic(SparseOperator(pattern, balance_columns(pattern, weight)))

    def _along(
        self, h: Float[Tensor, "nodes heads width"], edges: Operator
    ) -> Float[Tensor, "nodes out"]:
        if isinstance(edges, DoublyStochastic):
            pattern, value = edges.factor.pattern, edges.factor.value
            first, second = self._dropped_twice(value)
            pooled = product(pattern, second, h, transposed=True)
            return self._joined(product(pattern, first, pooled))
        value = edges.value
        if self.training and self.dropout > 0:
            value = drop(value, self.dropout, draw_key())
        return self._joined(product(edges.pattern, value, h))

    def _dropped_twice(self, value: Float[Tensor, " entries"]) -> tuple[Tensor, Tensor]:
        """``value`` under two independent masks, which together drop what was asked for."""
        if not self.training or self.dropout == 0:
            return value, value
        return drop_twice(value, 1 - sqrt(1 - self.dropout), draw_key())
