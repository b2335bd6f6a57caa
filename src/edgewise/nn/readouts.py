"""From node features to the rows that are predicted: nodes, edges with their ends, or graphs."""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from edgewise.core.declarations import POOLINGS
from edgewise.core.errors import EdgewiseError
from edgewise.graphs.batch import Batch
from edgewise.graphs.queries import EdgeQueries, QueriesInBlocks
from edgewise.kernels.pooling import attention_pool, mean_of, pool
from edgewise.kernels.selection import select_rows
from edgewise.nn.blocks import ACTIVATIONS
from edgewise.nn.linear import Linear
from edgewise.nn.node_states import NodeStates, Results, Take

# Computes some nodes, which are ascending, and hands over some of them at a time.
Compute = Callable[[Tensor, Take], None]
ReadOut = Callable[[Tensor, Batch], Tensor]

_INCREASING = ("elu", "relu")


class NodeReadout(nn.Module):
    """The nodes that are rows of the batch, after the activation."""

    activation = ""

    def connect(self, nodes: int) -> int:
        """Take nodes of this width; gives the width of a row."""
        return nodes

    def forward(self, x: Float[Tensor, "nodes width"], batch: Batch) -> Float[Tensor, "rows width"]:
        x = x if batch.rows is None else select_rows(x, batch.rows)
        return ACTIVATIONS[self.activation](x) if self.activation else x

    def in_blocks(
        self, batch: Batch, compute: Compute, read_out: ReadOut
    ) -> Float[Tensor, "rows out"]:
        """What ``read_out`` makes of the rows of a batch whose nodes come some at a time.

        Args:
            batch: Of a graph that is read in blocks.
            compute: Computes nodes.
            read_out: This read-out, and what follows it.
        """
        assert batch.rows is not None
        wanted, place = batch.rows.unique(return_inverse=True)
        every, found = batch.with_rows(None), Results(len(wanted))
        compute(wanted, lambda _, x: found.append(read_out(x, every)))
        return found.rows[place.to(found.rows.device)]


class AttentionPooling(nn.Module):
    """The mean of the nodes of each graph, weighted by the softmax of a learnt linear score."""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.score = Linear(nodes, 1, bias=False)  # a bias would not change a softmax

    def forward(self, x: Tensor, graph: Tensor, num_graphs: int) -> Tensor:
        return attention_pool(x, self.score(x), graph, num_graphs)


_LEARNT = {"attention": AttentionPooling}


class GraphReadout(nn.Module):
    """The nodes of each graph, pooled after the activation. A graph without nodes gives zeros.

    Args:
        pooling: One of :data:`~edgewise.core.declarations.POOLINGS`; several are put side by side.
            ``"attention"`` is :class:`AttentionPooling`.
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
        self.learnt = nn.ModuleDict()

    def connect(self, nodes: int) -> int:
        for part in self.parts:
            if part in _LEARNT:
                self.learnt[part] = _LEARNT[part](nodes)
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
            elif part in self.learnt:
                found[part] = self.learnt[part](x, graph, batch.num_graphs)
            else:
                found[part] = pool(x, graph, batch.num_graphs, part)
        parts = [found[part] for part in self.parts]
        pooled = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        if activate is not None and late:
            pooled = activate(pooled)
        return pooled if batch.rows is None else pooled[batch.rows]

    def in_blocks(
        self, batch: Batch, compute: Compute, read_out: ReadOut
    ) -> Float[Tensor, "rows out"]:
        """No graph that is pooled is read in blocks."""
        raise NotImplementedError


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
        self.own = Linear(in_channels, out_channels)
        self.directed = directed

    def connect(self, nodes: int) -> int:
        return 2 * nodes + self.own.out_features

    def forward(self, x: Float[Tensor, "nodes width"], batch: Batch) -> Float[Tensor, "rows wide"]:
        queries = batch.queries
        if not isinstance(queries, EdgeQueries):
            raise EdgewiseError("the batch names no edges to predict; give it queries")
        x = ACTIVATIONS[self.activation](x) if self.activation else x
        source, target = (x[end] for end in queries.edge_index)
        if not self.directed:
            source, target = source + target, (source - target).abs()
        return torch.cat([source, target, self.own(queries.features)], dim=1)

    def in_blocks(
        self, batch: Batch, compute: Compute, read_out: ReadOut
    ) -> Float[Tensor, "rows out"]:
        """As that of :class:`NodeReadout`: nodes are kept until all are computed."""
        queries = batch.queries
        assert isinstance(queries, QueriesInBlocks)
        states = NodeStates(batch.edges.num_nodes, queries.device)
        compute(queries.nodes(batch.edges.num_nodes), states.put)
        found = Results(queries.edge_index.size(1))
        for some in queries.parts():
            nodes, place = some.edge_index.unique(return_inverse=True)
            here = replace(batch, queries=replace(some, edge_index=place))
            found.append(read_out(states.take(nodes.cpu().numpy()), here))
        return found.rows


Readout = NodeReadout | EdgeReadout | GraphReadout
