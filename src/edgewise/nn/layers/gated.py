"""Convolution along learnt edge channels, which adapt from layer to layer."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from edgewise.core.declarations import ModelSettings
from edgewise.core.errors import EdgewiseError
from edgewise.graphs.edges import Edges
from edgewise.graphs.features import Features, SparseFeatures
from edgewise.graphs.sampled_edges import SampledLayer
from edgewise.kernels.colours import Level
from edgewise.kernels.dense import linear
from edgewise.kernels.gated import NORMALIZATIONS, gated_sum, sampled_sum
from edgewise.kernels.gated_colours import GatedColours
from edgewise.kernels.gated_pieces import gates
from edgewise.kernels.incidence import Incidence
from edgewise.nn.edge_state import EdgeState
from edgewise.nn.layers.layer import Layer, LayerShape

# Of sampled neighbours: what the others divide by is known for the whole graph alone.
SAMPLED = ("none", "row")


@dataclass(frozen=True, eq=False)
class SampledIncidence:
    """The edges of one layer of sampled neighbours, behind those of the layers that follow it."""

    every: Incidence  # whose states are computed
    here: Incidence  # along which messages go
    weight: Tensor  # what a message counts for
    later: int  # how many edges belong to layers that follow
    rows: int  # how many nodes gather


class GatedChannelConv(Layer):
    r"""Convolution along edge channels that are learnt gates, as in `GatedGCN
    <https://arxiv.org/abs/1711.07553>`_.

    .. math::
        z_{ij} = A x_i + B x_j + C e_{ij}, \qquad c_{ij} = \sigma(z_{ij}), \qquad
        x_i' = U x_i + \sum_j E_{ij} \odot V x_j

    for every edge from :math:`j` to :math:`i`, with a bias on :math:`z`, :math:`V x` and
    :math:`U x`. :math:`E` are the normalised channels: :math:`c_{ij}` itself (``"none"``),
    divided by :math:`\sum_j c_{ij}` (``"row"``), by
    :math:`\sqrt{\sum_j c_{ij}} \sqrt{\sum_i c_{ij}}` (``"symmetric"``), or by the two equations of
    :func:`edgewise.doubly_stochastic`, which join the nodes that receive from the same node.

    Edges have a *state*: ``edge_attr`` on the way in, any real numbers, and with
    ``return_edges=True`` :math:`z` on the way out, for the next layer to use in its place:

        >>> first = GatedChannelConv(8, 16, edge_dim=3)
        >>> second = GatedChannelConv(16, 16, edge_dim=16)
        >>> x, edge_index, edge_attr = torch.randn(3, 8), torch.tensor([[0], [1]]), torch.ones(1, 3)
        >>> h, edges = first(x, edge_index, edge_attr, return_edges=True)
        >>> second(h.relu(), edge_index, edges.relu()).shape
        torch.Size([3, 16])

    Each column of ``edge_index`` is an edge of its own: parallel edges are allowed and have a state
    each. No self-loops are added, because :math:`U x_i` is a node's own term; those in
    ``edge_index`` are edges like any other, and a node that no edge enters gathers nothing. Only
    doubly stochastic channels get a self-loop of weight 1 at every node, beside the edges that are
    there: without it the nodes at the two ends of an edge would not be joined.

    Args:
        in_channels: Width of a node on the way in.
        out_channels: Width of a node on the way out.
        edge_dim: Width of the edge state on the way in; None if there is none.
        normalize: ``"none"``, ``"row"``, ``"symmetric"`` or ``"doubly_stochastic"``.
        channels: Number of edge channels; a divisor of ``out_channels``, which is the default.
            Column ``f`` of :math:`V x` goes along channel ``f % channels``.
        bias: Whether to learn biases.
        flow: ``"source_to_target"`` as in PyG, or ``"target_to_source"``.

    Parameters of the layer: ``weight`` of the nodes, :math:`A`, :math:`B`, :math:`V` and :math:`U`
    from top to bottom, their ``bias``, and ``edge_weight``, :math:`C`.
    """

    settings = frozenset({"normalize", "channels"})
    takes_sparse_features = True
    has_edge_state = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        edge_dim: int | None = None,
        normalize: str = "none",
        *,
        channels: int | None = None,
        bias: bool = True,
        flow: str = "source_to_target",
    ) -> None:
        super().__init__()
        channels = out_channels if channels is None else channels
        if normalize not in NORMALIZATIONS:
            raise EdgewiseError(
                f"normalize={normalize!r} is not known; choose one of {', '.join(NORMALIZATIONS)}"
            )
        if flow not in ("source_to_target", "target_to_source"):
            raise EdgewiseError(
                f"flow={flow!r} is not known; choose source_to_target or target_to_source"
            )
        widths = {"in_channels": in_channels, "out_channels": out_channels, "channels": channels}
        for name, width in {**widths, "edge_dim": 1 if edge_dim is None else edge_dim}.items():
            if width < 1:
                raise EdgewiseError(f"{name}={width} must be at least 1")
        if out_channels % channels:
            raise EdgewiseError(
                f"channels={channels} does not divide out_channels={out_channels}; every channel "
                "must serve the same number of columns"
            )
        self.in_channels, self.out_channels = in_channels, out_channels
        self.edge_dim, self.channels = edge_dim, channels
        self.normalize, self.flow = normalize, flow
        self.out_width, self.edge_width, self.hands_on = out_channels, channels, True
        rows = 2 * channels + 2 * out_channels
        self.weight = nn.Parameter(torch.empty(rows, in_channels))
        self.bias = nn.Parameter(torch.empty(rows)) if bias else None
        self.edge_weight = (
            None if edge_dim is None else nn.Parameter(torch.empty(channels, edge_dim))
        )
        self.reset_parameters()

    @classmethod
    def build(cls, shape: LayerShape, settings: ModelSettings) -> "GatedChannelConv":
        channels = None if shape.is_head else settings.gates
        layer = cls(
            *(shape.in_channels, shape.out_channels, shape.edge_channels, settings.normalize),
            channels=channels,
        )
        layer.hands_on = not shape.last
        return layer

    @property
    def takes_colours(self) -> bool:
        return self.normalize == "none" and self.flow == "source_to_target"

    @property
    def gated_weights(self) -> tuple[int, Tensor, Tensor, Tensor] | None:
        own_formula = type(self) is not GatedChannelConv  # a subclass may compute otherwise
        if own_formula or self.bias is None or self.edge_weight is None:
            return None
        return self.channels, self.weight, self.bias, self.edge_weight

    @property
    def edge_key(self) -> Hashable:
        return "incidence", self.flow

    def prepare(self, edges: Edges) -> Incidence:
        return self.incidence(edges.edge_index, edges.num_nodes)

    @classmethod
    def hops(cls, settings: ModelSettings) -> int:
        if settings.normalize not in SAMPLED:
            raise EdgewiseError(
                f"learnt channels with normalize = {settings.normalize} are divided by sums over "
                "edges that are not sampled; set normalize = row or none, or leave out neighbors"
            )
        return 1

    def prepare_sampled(self, edges: SampledLayer) -> SampledIncidence:
        hops, nodes = edges.batch.hops[: edges.first + 1], edges.num_nodes
        source, target = (torch.cat([getattr(hop, end) for hop in hops]) for end in ("far", "near"))
        here = hops[-1]
        return SampledIncidence(
            Incidence(source, target, nodes),
            Incidence(here.far, here.near, nodes),
            here.weight.to(self.weight).unsqueeze(1),
            later=len(source) - len(here.far),
            rows=here.rows,
        )

    def project(self, x: Features) -> Tensor:
        if isinstance(x, SparseFeatures):
            nodes = x @ self.weight.t()
            return nodes if self.bias is None else nodes + self.bias
        return linear(x, self.weight, self.bias)

    def gather(self, projected: Tensor, edges: EdgeState, hop: int) -> Tensor:
        return self._sampled(projected, edges)[0]

    @property
    def hands_edges_on(self) -> bool:
        return self.hands_on

    def hand_on(self, projected: Tensor, edges: EdgeState) -> EdgeState:
        return edges.updated(self._states(projected, edges)[1])

    def _states(self, projected: Tensor, edges: EdgeState) -> tuple[Tensor, Tensor]:
        """Gates of all edges, and the states they are the sigmoid of."""
        target, source = projected[:, : 2 * self.channels].chunk(2, dim=1)
        term = None if self.edge_weight is None else linear(edges.features, self.edge_weight)
        return gates(edges.prepared.every, target, source, term)

    def _sampled(self, projected: Tensor, edges: EdgeState) -> tuple[Tensor, Tensor]:
        """New node features, and the edge states of the layers that follow."""
        sample = edges.prepared
        gate, state = self._states(projected, edges)
        message, own = projected[:, 2 * self.channels :].chunk(2, dim=1)
        weighted = gate[sample.later :] * sample.weight
        out = sampled_sum(sample.here, weighted, message, self.normalize)
        return (own + out)[: sample.rows], state[: sample.later]

    def advance(self, x: Features, edges: EdgeState) -> tuple[Tensor, EdgeState | None]:
        if isinstance(edges.prepared, SampledIncidence):
            out, state = self._sampled(self.project(x), edges)
            return out, edges.updated(state) if self.hands_on else None
        if not self.hands_on:
            return self.propagate(x, edges.prepared, edges.features), None
        out, state = self.propagate(x, edges.prepared, edges.features, return_edges=True)
        return out, edges.updated(state)

    def reset_parameters(self) -> None:
        """Draw new weights as ``torch.nn.Linear`` does, and zero the bias."""
        for weight in (self.weight, self.edge_weight):
            if weight is not None:
                nn.init.kaiming_uniform_(weight, a=5**0.5)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self,
        x: Features,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        *,
        return_edges: bool = False,
    ) -> Any:
        """``[nodes, out_channels]``; with ``return_edges`` also the new edge state."""
        incidence = self.incidence(edge_index, len(x))
        return self.propagate(x, incidence, edge_attr, return_edges=return_edges)

    def incidence(self, edge_index: Tensor, num_nodes: int) -> Incidence:
        """The ends of the edges as the layer walks them; all layers of a model can share it."""
        if edge_index.dim() != 2 or edge_index.size(0) != 2 or edge_index.is_floating_point():
            raise EdgewiseError(
                f"edge_index is {edge_index.dtype}{list(edge_index.shape)}, expected integers "
                "[2, edges]; a list of pairs is transposed by edge_index.T"
            )
        if edge_index.size(1):
            low, high = (int(bound) for bound in edge_index.aminmax())
            if low < 0 or high >= num_nodes:
                raise EdgewiseError(
                    f"edge_index names node {low if low < 0 else high}, but the nodes are numbered "
                    f"0 to {num_nodes - 1}; renumber the edges or leave them out"
                )
        source, target = edge_index.long().contiguous()
        if self.flow == "target_to_source":
            source, target = target, source
        return Incidence(source, target, num_nodes)

    def propagate(
        self,
        x: Features,
        incidence: Incidence | Level,
        edge_attr: Tensor | None = None,
        *,
        return_edges: bool = False,
    ) -> Any:
        """As the call, along edges that were prepared by :meth:`incidence`, or between colours."""
        self._check(x, incidence, edge_attr)
        nodes = self.project(x)
        term = None
        if edge_attr is not None and self.edge_weight is not None:
            term = linear(edge_attr, self.edge_weight)
        if isinstance(incidence, Level):
            out, state = GatedColours.apply(incidence, nodes, term, self.channels)
            return (out, state) if return_edges else out
        out, state = gated_sum(
            incidence, nodes, term, self.channels, self.normalize, keep_state=return_edges
        )
        return (out, state) if return_edges else out

    def _check(self, x: Features, incidence: Incidence | Level, edge_attr: Tensor | None) -> None:
        if len(x.shape) != 2 or tuple(x.shape) != (incidence.num_nodes, self.in_channels):
            raise EdgewiseError(
                f"x has shape {list(x.shape)}, but there are {incidence.num_nodes} nodes and this "
                f"layer was made for in_channels={self.in_channels}"
            )
        expected = None if self.edge_dim is None else (incidence.num_edges, self.edge_dim)
        given = None if edge_attr is None else tuple(edge_attr.shape)
        if given != expected:
            raise EdgewiseError(
                f"edge_attr has shape {_shape(given)}, but there are {incidence.num_edges} edges "
                f"and this layer was made for edge_dim={self.edge_dim}, which needs "
                f"{_shape(expected)}"
            )
        for name, tensor in (("x", x), ("edge_attr", edge_attr)):
            if tensor is None or torch.is_autocast_enabled(tensor.device.type):
                continue
            if tensor.dtype != self.weight.dtype:
                needed = str(self.weight.dtype)
                raise EdgewiseError(
                    f"{name} is {tensor.dtype}, but this layer's weights are {needed}; use "
                    f"{name}.to({needed})"
                )

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels}, {self.out_channels}, edge_dim={self.edge_dim}, "
            f"normalize={self.normalize!r}, channels={self.channels}"
        )


def _shape(given: tuple[int, ...] | None) -> str:
    return "None" if given is None else str(list(given))
