"""A network over a graph that is never in memory whole: layer by layer, in blocks of rows.

What nodes hand to their neighbours is kept in an array for all nodes, in memory or in a temporary
file; the rest exists for a block at a time. The result is that of the whole graph at once.
"""

from collections.abc import Callable, Iterator
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from edgewise.graphs.features import Features
from edgewise.graphs.sampled_graph import StoredEdges
from edgewise.kernels.memory import memory_limit
from edgewise.kernels.sampling import mark_neighbors
from edgewise.nn.blocks import Block
from edgewise.nn.edge_state import EdgeState

# What a block holds at most, unless a single node has more neighbours.
MOST_ROWS, MOST_PAIRS = 2**14, 2**17
IN_MEMORY = 0.25  # of the memory limit, that one array may take


class Parts:
    """The parts of a network, as they are applied to some nodes.

    Args:
        encode: From the features of nodes to the input of the first block.
        incident: What the sums of the channels at a node are mapped by, if they are.
        edge_encoder: What the channels of edges are mapped by, where they have a state.
        blocks: In their order.
        hops: How many each layer takes.
        direction: How direction becomes channels.
    """

    def __init__(
        self,
        encode: Callable[[Features], Features],
        incident: nn.Module | None,
        edge_encoder: nn.Module | None,
        blocks: list[Block],
        hops: int,
        direction: str,
    ) -> None:
        self.encode, self.incident, self.edge_encoder = encode, incident, edge_encoder
        self.blocks, self.hops, self.direction = blocks, hops, direction

    def input(self, edges: StoredEdges, rows: Int[np.ndarray, " rows"]) -> Tensor:
        """What goes into the first block."""
        x = torch.from_numpy(np.take(np.asarray(edges.graph.x), rows, axis=0)).to(edges.device)
        h = self.encode(x)
        assert isinstance(h, Tensor)
        if self.incident is None:
            return h
        sums = edges.sums.entering(self.direction, rows).to(h)
        return h + self.incident(sums.log1p())


def computed_in_blocks(
    parts: Parts,
    edges: StoredEdges,
    wanted: Int[Tensor, " wanted"],
    finish: Callable[[Tensor], Float[Tensor, "rows out"]],
) -> Float[Tensor, "wanted out"]:
    """What ``finish`` makes of the output of the last block, for some nodes.

    Args:
        parts: Of the network.
        edges: Of the graph.
        wanted: Nodes, ascending, each once.
        finish: Called with the features of some nodes.
    """
    needed = _needed(edges, wanted.numpy(), len(parts.blocks) * parts.hops)
    states = [_States(edges)]  # of each layer: what its nodes project
    own: dict[int, _States] = {}  # the input of blocks that read it once more
    for rows in _pieces(edges, needed.pop()):
        _keep(parts, 0, rows, parts.input(edges, rows), states[0], own, edges)
    results = []
    for number, block in enumerate(parts.blocks):
        last = number == len(parts.blocks) - 1
        gathered = states[-1]
        for hop in range(parts.hops - 1, -1, -1):
            following = _States(edges)
            for rows in _pieces(edges, needed[-1]):
                nodes, here = edges.around(rows, parts.direction, hop)
                prepared = _prepared(parts, number, states, nodes, here)
                out = block.layer.gather(gathered.take(nodes), prepared, hop)
                if hop:
                    following.put(rows, out)
                    continue
                before = own[number].take(rows) if number in own else out[:, :0]
                out = block.finish(out, before)
                if last:
                    results.append(finish(out))
                else:
                    _keep(parts, number + 1, rows, out, following, own, edges)
            needed.pop()
            gathered = following
        own.pop(number, None)
        if not _is_carried(block):
            states[-1].clear()
        states.append(gathered)
    return torch.cat(results)


def _keep(
    parts: Parts,
    number: int,
    rows: Int[np.ndarray, " rows"],
    x: Tensor,
    states: "_States",
    own: dict[int, "_States"],
    edges: StoredEdges,
) -> None:
    """Keep what the block of this number reads of nodes."""
    block = parts.blocks[number]
    states.put(rows, block.layer.project(x))
    if block.reads_input:
        own.setdefault(number, _States(edges)).put(rows, x)


def _prepared(
    parts: Parts, number: int, states: list["_States"], nodes: np.ndarray, here: Any
) -> Any:
    """What a layer propagates along: where it is handed on, from the first layer on."""
    carried = parts.blocks[:number]
    first = carried[0] if carried and _is_carried(carried[0]) else parts.blocks[number]
    edges = here.prepared(first.layer)
    if parts.edge_encoder is not None:
        edges = EdgeState(edges, parts.edge_encoder(here.batch.edge_attr))
    for block, projected in zip(carried, states, strict=False):
        if _is_carried(block):
            edges = block.hand_on(projected.take(nodes), edges)
    return edges


def _is_carried(block: Block) -> bool:
    """Whether the layers that follow read what it makes of the edges."""
    return block.layer.hands_edges_on


def _needed(edges: StoredEdges, wanted: np.ndarray, hops: int) -> list[Bool[np.ndarray, " nodes"]]:
    """The nodes that are computed after each hop, and before the first: the last comes last."""
    mask = np.zeros(edges.num_nodes, dtype=np.bool_)
    mask[wanted] = True
    masks = [mask]
    for _ in range(hops):
        masks.append(mark_neighbors(edges.graph.adjacency.lists, masks[-1]))
    return masks


def _pieces(edges: StoredEdges, mask: Bool[np.ndarray, " nodes"]) -> Iterator[np.ndarray]:
    """Nodes, in their order, as many at a time as a block holds."""
    nodes = np.flatnonzero(mask)
    pairs = np.cumsum(edges.sums.degree[nodes] + 1, dtype=np.int64)
    first = 0
    while first < len(nodes):
        before = pairs[first - 1] if first else 0
        end = int(np.searchsorted(pairs, before + MOST_PAIRS, side="right"))
        end = min(max(end, first + 1), first + MOST_ROWS)
        yield nodes[first:end]
        first = end


class _States:
    """A row of numbers for every node of the graph; made when the first rows are put."""

    def __init__(self, edges: StoredEdges) -> None:
        self._edges, self._rows = edges, np.empty((0, 0))

    def put(self, nodes: Int[np.ndarray, " rows"], value: Float[Tensor, "rows width"]) -> None:
        found = value.cpu().numpy()
        if not self._rows.size:
            self._rows = _array((self._edges.num_nodes, found.shape[1]), found.dtype)
        self._rows[nodes] = found

    def take(self, nodes: Int[np.ndarray, " rows"]) -> Float[Tensor, "rows width"]:
        taken = torch.from_numpy(np.take(np.asarray(self._rows), nodes, axis=0))
        return taken.to(self._edges.device)

    def clear(self) -> None:
        """Give the memory back."""
        self._rows = np.empty((0, 0))


def _array(shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray:
    """In memory if it fits, else in a file that is gone when nobody reads it."""
    if shape[0] * shape[1] * dtype.itemsize <= IN_MEMORY * memory_limit():
        return np.empty(shape, dtype)
    with TemporaryFile() as file:
        return np.memmap(file, dtype, "w+", shape=shape)
