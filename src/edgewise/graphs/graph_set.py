"""Many small graphs as flat arrays with offsets; a batch is cut out by array operations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.graphs.batch import Batch
from edgewise.graphs.edges import Edges, Preparer
from edgewise.graphs.graph import Graph
from edgewise.graphs.share import EVERYTHING, Share

EVALUATION_BATCH = 256  # graphs at a time where no gradient is needed
# Nodes times channels up to which what layers prepare is kept for the whole set, to cut batches
# from. Attention on Tox21, 5.2 million of them, holds 0.7 GiB.
MOST_ROWS = 8_000_000


@dataclass(frozen=True, eq=False)
class GraphSet:
    """Many small graphs, end to end in flat arrays.

    Graph ``g`` owns the nodes ``node_offset[g]`` up to ``node_offset[g + 1]`` and the edges
    likewise. ``edge_index`` counts nodes within their own graph.
    """

    x: Float[Tensor, "nodes features"]
    edge_index: Int[Tensor, "2 edges"]
    edge_attr: Float[Tensor, "edges channels"]
    node_offset: Int[Tensor, " graphs_and_one"]
    edge_offset: Int[Tensor, " graphs_and_one"]
    ids: tuple[str, ...]  # the name of each graph; of a molecule its SMILES
    rows: Int[Tensor, " graphs"]  # where each graph stands in its table
    channel_names: tuple[str, ...] = ()
    id_name: str = "graph"  # what the names of graphs are called in a table
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    whole_graph: ClassVar[bool] = False

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def num_features(self) -> int:
        return self.x.size(1)

    @property
    def num_channels(self) -> int:
        return self.edge_attr.size(1)

    def __repr__(self) -> str:
        return (
            f"GraphSet(graphs={len(self)}, nodes={len(self.x)}, "
            f"edges={self.edge_index.size(1)}, channels={self.num_channels}, "
            f"features={self.num_features})"
        )

    def batch(self, rows: Sequence[int] | Tensor) -> Batch:
        """Some graphs, in the order given, as one block-diagonal graph."""
        chosen = torch.as_tensor(rows, dtype=torch.int64)
        if chosen.dim() != 1 or not len(chosen):
            raise EdgewiseError(
                f"a batch of shape {list(chosen.shape)} is none; give the positions of one "
                "or more graphs"
            )
        if int(chosen.min()) < 0 or int(chosen.max()) >= len(self):
            outside = chosen[(chosen < 0) | (chosen >= len(self))].tolist()
            raise EdgewiseError(
                f"graph(s) {preview(outside)} do not exist; the set holds {len(self)}, "
                "counted from 0"
            )
        nodes = _ranges(self.node_offset, chosen)
        batch = Batch(
            x=self.x.index_select(0, nodes.positions),
            edges=EdgesOfSome(self, chosen, nodes.counts),
            graph=torch.arange(len(chosen)).repeat_interleave(
                nodes.counts, output_size=len(nodes.positions)
            ),
            num_graphs=len(chosen),
        )
        return batch if self.device.type == "cpu" else batch.to(self.device)

    def steps(self, rows: int, batch_size: int) -> int:
        """How many batches so many training rows make."""
        return -(-rows // batch_size)

    def training_batches(
        self, rows: Tensor, batch_size: int, share: Share = EVERYTHING
    ) -> Iterator[tuple[Tensor, Batch]]:
        """The rows in an order that torch's generator draws, some at a time."""
        for drawn in rows[torch.randperm(len(rows))].split(batch_size):
            # Processes wait for each other at every batch normalisation.
            some = share.balanced(drawn, self.edge_offset[drawn + 1] - self.edge_offset[drawn])
            yield some, self.batch(share.of(some))

    def evaluation_batches(self, rows: Tensor) -> Iterator[Batch]:
        """The rows in their order, some at a time."""
        for some in rows.split(EVALUATION_BATCH) if len(rows) else ():
            yield self.batch(some)

    @cached_property
    def every_edge(self) -> Edges:
        """The edges of all graphs as those of one block-diagonal graph."""
        first = self.node_offset[:-1].repeat_interleave(
            self.edge_offset.diff(), output_size=self.edge_index.size(1)
        )
        return Edges(self.edge_index + first, self.edge_attr, len(self.x))

    def encoded(self, direction: str) -> "GraphSet":
        """The same graphs with direction as channels, made once for all batches."""
        if direction == "as_given":
            return self
        if direction not in self._encoded:
            edges = self.every_edge.encoded(direction)
            # Edges stay within their graph, which that of either end tells.
            graph = torch.bucketize(edges.edge_index[0], self.node_offset[1:], right=True)
            order = graph.argsort(stable=True)
            graph = graph[order]
            self._encoded[direction] = replace(
                self,
                edge_index=edges.edge_index[:, order] - self.node_offset[graph],
                edge_attr=edges.edge_attr[order],
                edge_offset=_offsets(graph, len(self)),
            )
        return self._encoded[direction]

    @cached_property
    def _encoded(self) -> dict[str, "GraphSet"]:
        return {}


def graph_set(graphs: Sequence[Graph], ids: Sequence[str] = ()) -> GraphSet:
    """Many graphs of equal features and channels, end to end.

    Args:
        graphs: In their order; labels of nodes are left behind.
        ids: The name of each; without them their numbers.
    """
    if not graphs:
        raise EdgewiseError("there are no graphs; give one or more")
    for number, graph in enumerate(graphs):
        if not graph.num_nodes:
            raise EdgewiseError(f"graph {number} has no nodes; leave it out")
        for what in ("num_features", "num_channels"):
            found, first = getattr(graph, what), getattr(graphs[0], what)
            if found != first:
                raise EdgewiseError(
                    f"graph {number} has {found} {what.removeprefix('num_')}, but graph 0 has "
                    f"{first}; give all graphs the same"
                )
    nodes = torch.tensor([0, *(graph.num_nodes for graph in graphs)]).cumsum(0)
    edges = torch.tensor([0, *(graph.num_edges for graph in graphs)]).cumsum(0)
    return GraphSet(
        x=torch.cat([graph.x.float() for graph in graphs]),
        edge_index=torch.cat([graph.edge_index.long() for graph in graphs], dim=1),
        edge_attr=torch.cat([graph.channels.float() for graph in graphs]),
        node_offset=nodes,
        edge_offset=edges,
        ids=tuple(ids) or tuple(map(str, range(len(graphs)))),
        rows=torch.arange(len(graphs)),
        channel_names=graphs[0].channel_names or (),
    )


class EdgesOfSome(Edges):
    """The edges of some graphs of a set: gathered, or what layers prepared for the set, cut."""

    def __init__(self, whole: GraphSet, chosen: Tensor, nodes_of_graph: Tensor) -> None:
        self.whole, self.chosen, self._nodes_of_graph = whole, chosen, nodes_of_graph
        self.num_nodes = int(nodes_of_graph.sum())
        self._prepared, self._encoded = {}, {}

    @cached_property
    def _gathered(self) -> tuple[Tensor, Tensor]:
        edges = _ranges(self.whole.edge_offset, self.chosen)
        first_node = _exclusive_sum(self._nodes_of_graph)
        index = self.whole.edge_index.index_select(1, edges.positions)
        shift = first_node.repeat_interleave(edges.counts, output_size=len(edges.positions))
        return index + shift, self.whole.edge_attr.index_select(0, edges.positions)

    @property
    def edge_index(self) -> Int[Tensor, "2 edges"]:
        return self._gathered[0]

    @property
    def edge_attr(self) -> Tensor:
        return self._gathered[1]

    def encoded(self, direction: str) -> Edges:
        if direction == "as_given":
            return self
        if direction not in self._encoded:
            whole = self.whole.encoded(direction)
            self._encoded[direction] = EdgesOfSome(whole, self.chosen, self._nodes_of_graph)
        return self._encoded[direction]

    def prepared(self, layer: Preparer) -> Any:
        if layer.edge_key not in self._prepared:
            whole = self._of_whole_set(layer)
            self._prepared[layer.edge_key] = (
                layer.prepare(self)
                if whole is None
                else layer.cut(whole, self.whole.node_offset, self.chosen)
            )
        return self._prepared[layer.edge_key]

    def _of_whole_set(self, layer: Preparer) -> Any:
        """What the layer prepared for all graphs; None where it cannot, or they are too many."""
        every = self.whole.every_edge
        if len(self.whole.x) * self.whole.num_channels > MOST_ROWS:
            return None
        return every.prepared_many(layer)


class _Ranges(NamedTuple):
    positions: Tensor  # all members of the chosen ranges, one range after the other
    counts: Tensor  # how many each range has


def _ranges(offset: Tensor, chosen: Tensor) -> _Ranges:
    start = offset.index_select(0, chosen)
    counts = offset.index_select(0, chosen + 1) - start
    before = _exclusive_sum(counts)
    total = int(before[-1] + counts[-1])
    shift = (start - before).repeat_interleave(counts, output_size=total)
    return _Ranges(torch.arange(total) + shift, counts)


def _offsets(graph: Tensor, count: int) -> Tensor:
    """Where the members of each graph begin, and the last end."""
    sizes = torch.bincount(graph, minlength=count)
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def _exclusive_sum(counts: Tensor) -> Tensor:
    return counts.cumsum(0) - counts
