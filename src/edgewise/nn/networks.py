"""Networks of channel layers, for nodes and for whole graphs. The paper's variants are settings."""

from typing import cast

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import elu

from edgewise.core.errors import EdgewiseError
from edgewise.core.recipe import Architecture
from edgewise.graphs.features import SparseFeatures
from edgewise.kernels.activation import drop, elu_and_drop
from edgewise.kernels.dropout import draw_key
from edgewise.kernels.pooling import pool
from edgewise.nn.layers import ChannelAttention, ChannelConv, Features
from edgewise.nn.operators import Operator

# The rows of the paper's Table 2. GCN and GAT are the framework's simplest settings.
VARIANTS = {
    "GCN": Architecture(normalize="symmetric", directed=False),
    "GAT": Architecture("attention", "row", adapt=False, directed=False, hidden=8, heads=8),
    "EGNN(C)-M": Architecture(directed=False),
    "EGNN(C)-D": Architecture(normalize="symmetric"),
    "EGNN(C)": Architecture(),
    "EGNN(A)-D-M": Architecture("attention", "row", directed=False),
    "EGNN(A)-A-M": Architecture("attention", adapt=False, directed=False),
    "EGNN(A)-A-D": Architecture("attention", "row", adapt=False),
    "EGNN(A)": Architecture("attention"),
}


class Network(nn.Module):
    """A model as a trainer needs it."""

    def weights(self) -> list[nn.Parameter]:
        """The parameters that L2 regularisation applies to: all but the biases."""
        return [p for name, p in self.named_parameters() if not name.endswith("bias")]

    def biases(self) -> list[nn.Parameter]:
        return [p for name, p in self.named_parameters() if name.endswith("bias")]


class _ChannelNetwork(Network):
    """A stack of channel layers, all but the last followed by ELU and dropout."""

    def __init__(
        self,
        in_channels: int,
        edge_channels: int,
        architecture: Architecture,
        last_width: int,
        last_heads: int,
        concat_last: bool,
    ) -> None:
        super().__init__()
        a = architecture
        if a.layer not in ("conv", "attention"):
            raise EdgewiseError(f"layer={a.layer!r} is not known; choose conv or attention")
        if a.depth < 1:
            raise EdgewiseError(f"depth={a.depth} must be at least 1")
        if not 0 <= a.dropout < 1:
            raise EdgewiseError(f"dropout={a.dropout} must be at least 0 and below 1")
        if a.layer == "conv" and a.heads > 1:
            raise EdgewiseError("heads belong to attention; set heads=1 for layer='conv'")
        self.adapts = a.layer == "attention" and a.adapt
        if self.adapts and a.heads > 1:
            raise EdgewiseError(
                "adapted edges have one set of channels per head, which would multiply from "
                "layer to layer; set heads=1 or adapt=False"
            )
        self.architecture, self.edge_channels = architecture, edge_channels
        self.layers = nn.ModuleList()
        for depth in range(a.depth):
            last = depth == a.depth - 1
            width, heads = (last_width, last_heads) if last else (a.hidden, a.heads)
            shape = (in_channels, width, edge_channels, a.normalize, concat_last or not last)
            if a.layer == "conv":
                self.layers.append(ChannelConv(*shape))
            else:
                self.layers.append(ChannelAttention(*shape, heads=heads, dropout=a.dropout))
            in_channels = width * edge_channels * heads

    def operators(
        self, edge_index: Tensor, edge_attr: Tensor | None, num_nodes: int
    ) -> list[Operator]:
        """The operator of each layer, to be built once for a graph that is used many times.

        With adaptation only the first is used, and the others are it.
        """
        by_heads: dict[int, Operator] = {}
        for layer in self._steps():
            if layer.heads not in by_heads:
                by_heads[layer.heads] = layer.operator(edge_index, edge_attr, num_nodes)
        return [by_heads[layer.heads] for layer in self._steps()]

    def embed(self, x: Features, operators: list[Operator]) -> Float[Tensor, "nodes out"]:
        """The output of the last layer."""
        h, edges = self._before_last(x, operators)
        return self._steps()[-1].propagate(h, edges)

    def _before_last(self, x: Features, operators: list[Operator]) -> tuple[Features, Operator]:
        """What goes into the last layer, and the edges along which it goes there."""
        p = self.architecture.dropout if self.training else 0.0
        h = _dropped(x, p)
        edges = operators[0]
        for layer, operator in zip(self._steps()[:-1], operators, strict=False):
            if isinstance(layer, ChannelAttention) and self.adapts:
                out, edges = layer.adapt_unbiased(h, edges)
            else:
                out = layer.unbiased(h, operator)
            h = elu_and_drop(out, layer.bias, p, draw_key() if p > 0 else 0)
        return h, edges if self.adapts else operators[-1]

    def _steps(self) -> list[ChannelConv | ChannelAttention]:
        return cast(list[ChannelConv | ChannelAttention], list(self.layers))


class NodeModel(_ChannelNetwork):
    """One output row per node: scores of its classes, or values.

    Hidden layers concatenate their channels; the last one averages them, because its width is
    the number of classes.

    Args:
        in_channels: Number of node features.
        out_channels: Number of classes, or of values.
        edge_channels: Number of edge channels.
        architecture: Layers, normalisation, depth, width; see :data:`VARIANTS`.

    Example:
        >>> import torch
        >>> model = NodeModel(1433, 7, edge_channels=3, architecture=VARIANTS["EGNN(A)"])
        >>> x, edges = torch.rand(4, 1433), torch.tensor([[0, 1], [1, 2]])
        >>> model(x, edges, torch.ones(2, 3)).shape
        torch.Size([4, 7])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        edge_channels: int = 1,
        architecture: Architecture | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            edge_channels,
            architecture or Architecture(),
            last_width=out_channels,
            last_heads=1,
            concat_last=False,
        )

    def forward(
        self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None
    ) -> Float[Tensor, "nodes out"]:
        return self.propagate(x, self.operators(edge_index, edge_attr, len(x)))

    def propagate(self, x: Features, operators: list[Operator]) -> Float[Tensor, "nodes out"]:
        """The network along operators from :meth:`operators`."""
        return self.embed(x, operators)

    def represent(self, x: Features, operators: list[Operator]) -> Float[Tensor, "nodes width"]:
        """Each node as the last layer meets it; of a single layer, its output."""
        if len(self.layers) == 1:
            return self.embed(x, operators)
        h, _ = self._before_last(x, operators)
        assert isinstance(h, Tensor)
        return h


class GraphModel(_ChannelNetwork):
    """One output row per graph: channel layers, pooling over the nodes, one linear layer.

    Args:
        in_channels: Number of node features.
        out_channels: Number of outputs per graph.
        edge_channels: Number of edge channels.
        architecture: Layers, normalisation, depth, width.
        pooling: ``"max"`` as in the paper, ``"mean"`` or ``"sum"``. A graph without nodes
            pools to zeros.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        edge_channels: int = 1,
        architecture: Architecture | None = None,
        *,
        pooling: str = "max",
    ) -> None:
        a = architecture or Architecture(hidden=16, dropout=0.0)
        super().__init__(in_channels, edge_channels, a, a.hidden, a.heads, concat_last=True)
        if pooling not in ("max", "mean", "sum"):
            raise EdgewiseError(f"pooling={pooling!r} is not known; choose max, mean or sum")
        self.pooling = pooling
        self.head = nn.Linear(a.hidden * edge_channels * a.heads, out_channels)

    def forward(
        self,
        x: Features,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
    ) -> Float[Tensor, "graphs out"]:
        """``batch`` is the graph of each node, as in PyG; without it there is one graph."""
        if batch is None:
            batch = edge_index.new_zeros(len(x))
        if num_graphs is None:
            num_graphs = int(batch.max()) + 1 if len(batch) else 1
        _check_batch(batch, num_graphs, len(x))
        operators = self.operators(edge_index, edge_attr, len(x))
        return self.propagate(x, operators, batch, num_graphs)

    def propagate(
        self, x: Features, operators: list[Operator], batch: Tensor, num_graphs: int
    ) -> Float[Tensor, "graphs out"]:
        """The network along operators from :meth:`operators`."""
        return self.head(self.represent(x, operators, batch, num_graphs))

    def represent(
        self, x: Features, operators: list[Operator], batch: Tensor, num_graphs: int
    ) -> Float[Tensor, "graphs width"]:
        """Each graph as the linear layer meets it: its nodes, pooled."""
        h = self.embed(x, operators)
        if self.pooling == "max":  # ELU increases, so it can wait until few values are left
            return elu(pool(h, batch, num_graphs, "max"))
        return pool(elu(h), batch, num_graphs, self.pooling)


def _check_batch(batch: Tensor, num_graphs: int, num_nodes: int) -> None:
    if batch.shape != (num_nodes,):
        raise EdgewiseError(
            f"batch has {list(batch.shape)} numbers for {num_nodes} nodes; give the graph of each"
        )
    outside = batch[(batch < 0) | (batch >= num_graphs)]
    if len(outside):
        raise EdgewiseError(
            f"batch names graph {int(outside[0])}, but with num_graphs={num_graphs} the graphs are "
            f"numbered 0 to {num_graphs - 1}"
        )


def _dropped(x: Features, p: float) -> Features:
    if p == 0:
        return x
    key = draw_key()
    return x.dropped(p, key) if isinstance(x, SparseFeatures) else drop(x, p, key)
