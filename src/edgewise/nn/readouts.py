"""From node features to the rows that are predicted: nodes themselves, or pooled graphs."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edgewise.core.errors import EdgewiseError
from edgewise.core.settings import POOLINGS
from edgewise.graphs.batch import Batch
from edgewise.kernels.pooling import pool
from edgewise.nn.blocks import ACTIVATIONS

_INCREASING = ("elu", "relu")


class NodeReadout(nn.Module):
    """The nodes that are rows of the batch, after the activation."""

    activation = ""
    parts = ("node",)

    def forward(self, x: Float[Tensor, "nodes width"], batch: Batch) -> Float[Tensor, "rows width"]:
        x = x if batch.rows is None else x[batch.rows]
        return ACTIVATIONS[self.activation](x) if self.activation else x


class GraphReadout(nn.Module):
    """The nodes of each graph, pooled after the activation. A graph without nodes gives zeros."""

    activation = ""

    def __init__(self, pooling: str = "max") -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise EdgewiseError(
                f"pooling = {pooling!r} is unknown; choose one of {', '.join(POOLINGS)}"
            )
        self.pooling = pooling
        self.parts = pooling.split("+")

    def forward(self, x: Float[Tensor, "nodes width"], batch: Batch) -> Float[Tensor, "rows wide"]:
        graph, activate = batch.graph_of_node, ACTIVATIONS.get(self.activation)
        # What increases can wait until a maximum has left few values.
        late = self.pooling == "max" and self.activation in _INCREASING
        if activate is not None and not late:
            x = activate(x)
        parts = [pool(x, graph, batch.num_graphs, part) for part in self.parts]
        pooled = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        if activate is not None and late:
            pooled = activate(pooled)
        return pooled if batch.rows is None else pooled[batch.rows]


Readout = NodeReadout | GraphReadout
