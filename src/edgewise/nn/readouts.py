"""From node features to the rows that are predicted: nodes, edges with their ends, or graphs."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edgewise.core.errors import EdgewiseError
from edgewise.core.settings import POOLINGS
from edgewise.graphs.batch import Batch
from edgewise.kernels.pooling import attention_pool, mean_of, pool
from edgewise.nn.blocks import ACTIVATIONS

_INCREASING = ("elu", "relu")


class NodeReadout(nn.Module):
    """The nodes that are rows of the batch, after the activation."""

    activation = ""

    def connect(self, nodes: int) -> int:
        """Take nodes of this width; gives the width of a row."""
        return nodes

    def forward(self, x: Float[Tensor, "nodes width"], batch: Batch) -> Float[Tensor, "rows width"]:
        x = x if batch.rows is None else x[batch.rows]
        return ACTIVATIONS[self.activation](x) if self.activation else x


class GraphReadout(nn.Module):
    """The nodes of each graph, pooled after the activation. A graph without nodes gives zeros.

    Args:
        pooling: One of :data:`~edgewise.core.settings.POOLINGS`; several are put side by side.
            ``"attention"`` is a mean whose weights are a softmax, over the nodes of a graph, of a
            learnt linear score.
    """

    activation = ""

    def __init__(self, pooling: str = "max") -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise EdgewiseError(
                f"pooling = {pooling!r} is unknown; choose one of {', '.join(POOLINGS)}"
            )
        self.pooling = pooling
        self.parts = pooling.split("+")
        self.score: nn.Linear | None = None

    def connect(self, nodes: int) -> int:
        if "attention" in self.parts:
            self.score = nn.Linear(nodes, 1, bias=False)  # a bias would not change a softmax
        return nodes * len(self.parts)

    def forward(self, x: Float[Tensor, "nodes width"], batch: Batch) -> Float[Tensor, "rows wide"]:
        graph, activate = batch.graph_of_node, ACTIVATIONS.get(self.activation)
        # What increases can wait until a maximum has left few values.
        late = self.pooling == "max" and self.activation in _INCREASING
        if activate is not None and not late:
            x = activate(x)
        found: dict[str, Tensor] = {}
        for part in sorted(self.parts, reverse=True):  # the sum before the mean, which needs it
            if part == "mean" and "sum" in found:
                found[part] = mean_of(found["sum"], graph)
            elif part == "attention" and self.score is not None:
                found[part] = attention_pool(x, self.score(x), graph, batch.num_graphs)
            else:
                found[part] = pool(x, graph, batch.num_graphs, part)
        parts = [found[part] for part in self.parts]
        pooled = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        if activate is not None and late:
            pooled = activate(pooled)
        return pooled if batch.rows is None else pooled[batch.rows]


class EdgeReadout(nn.Module):
    """An edge: its source, its target and its own features; without direction, ends count alike.

    Args:
        in_channels: Width of the features of an edge to predict.
        out_channels: Width that they are mapped to.
        directed: Whether source and target are told apart.
    """

    activation = ""

    def __init__(self, in_channels: int, out_channels: int, *, directed: bool = True) -> None:
        super().__init__()
        self.own = nn.Linear(in_channels, out_channels)
        self.directed = directed

    def connect(self, nodes: int) -> int:
        return 2 * nodes + self.own.out_features

    def forward(self, x: Float[Tensor, "nodes width"], batch: Batch) -> Float[Tensor, "rows wide"]:
        queries = batch.queries
        if queries is None:
            raise EdgewiseError("the batch names no edges to predict; give it queries")
        x = ACTIVATIONS[self.activation](x) if self.activation else x
        source, target = (x[end] for end in queries.edge_index)
        if not self.directed:
            source, target = source + target, (source - target).abs()
        return torch.cat([source, target, self.own(queries.features)], dim=1)


Readout = NodeReadout | EdgeReadout | GraphReadout
