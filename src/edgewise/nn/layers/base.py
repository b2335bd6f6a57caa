"""What the layers share: from raw channels to an operator, and from channels to the output."""

from collections.abc import Hashable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edgewise.core.errors import EdgewiseError
from edgewise.graphs.channels import add_self_loops
from edgewise.graphs.edges import Edges
from edgewise.graphs.features import Features, SparseFeatures
from edgewise.graphs.sampled_edges import SampledLayer
from edgewise.kernels.dense import linear
from edgewise.nn.layers.layer import Layer
from edgewise.nn.normalization import NORMALIZATIONS
from edgewise.nn.operators import Operator, SampledFactors, SparseOperator, cut, without_lone_loops
from edgewise.nn.sampled import sampled_hop, sampled_operator


def mapped(x: Features, weight: Float[Tensor, "features out"]) -> Float[Tensor, "nodes out"]:
    """``x @ weight``; for a dense ``x`` in the order that BLAS is quick at for narrow weights."""
    return x @ weight if isinstance(x, SparseFeatures) else linear(x, weight.t().contiguous())


def check_type(x: Features, weight: Tensor) -> None:
    """Refuse features that are not of the type of the weights they meet."""
    if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
        given, needed = (str(t).removeprefix("torch.") for t in (x.dtype, weight.dtype))
        raise EdgewiseError(
            f"x is {given}, but this layer's weights are {needed}; use x.to(torch.{needed})"
        )


class ChannelLayer(Layer):
    """What both layers share: the way from raw channels to an operator, and the output's form."""

    takes_sparse_features = True

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
        self.out_width = copies * out_channels
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

    @property
    def deferred_bias(self) -> Tensor | None:
        return self.bias

    @property
    def edge_key(self) -> Hashable:
        return self.normalize, self.heads, self.flow, self.weight.dtype

    def prepare(self, edges: Edges) -> Operator:
        return self.operator(edges.edge_index, edges.edge_attr, edges.num_nodes)

    def prepare_many(self, edges: Edges) -> Operator:
        operator = self.prepare(edges)
        return operator if self.drops_edges else without_lone_loops(operator)

    def cut(self, prepared: Operator, node_offset: Tensor, chosen: Tensor) -> Operator:
        return cut(prepared, node_offset, chosen)

    def prepare_sampled(self, edges: SampledLayer) -> Any:
        return self.sampled_operator(edges)

    def sampled_operator(self, edges: SampledLayer) -> SparseOperator | SampledFactors:
        """The operator of sampled neighbours, or of one of its hops."""
        dtype = self.weight.dtype
        if edges.only is None:
            return sampled_operator(edges, self.normalize, dtype)
        return sampled_hop(edges, self.normalize, edges.only, dtype, place=0)

    @property
    def drops_edges(self) -> bool:
        """Whether entries of the operator are dropped in training, self-loops as well."""
        return False

    def check(self, x: Features, edges: Operator | SampledFactors, channels: int) -> None:
        """Refuse nodes and edges that this layer was not made for."""
        if len(x.shape) != 2 or x.shape[1] != self.in_channels:
            raise EdgewiseError(
                f"x has shape {list(x.shape)}, but this layer was made for "
                f"in_channels={self.in_channels}"
            )
        check_type(x, self.weight)
        if edges.shape[0] != len(x) or edges.channels != channels:
            raise EdgewiseError(
                f"the edges join {edges.shape[0]} nodes in {edges.channels} channel(s), but "
                f"there are {len(x)} nodes and this layer works on {channels} channel(s)"
            )

    def joined(self, out: Float[Tensor, "nodes channels width"]) -> Float[Tensor, "nodes joined"]:
        """The channels side by side, or their mean."""
        return out.flatten(1) if self.concat else out.mean(1)

    def add_bias(self, out: Float[Tensor, "nodes joined"]) -> Float[Tensor, "nodes joined"]:
        """The joined channels, with the bias."""
        return out if self.bias is None else out + self.bias

    def extra_repr(self) -> str:
        heads = f", heads={self.heads}" if self.heads > 1 else ""
        return (
            f"{self.in_channels}, {self.out_channels}, edge_channels={self.edge_channels}, "
            f"normalize={self.normalize!r}, concat={self.concat}{heads}"
        )
