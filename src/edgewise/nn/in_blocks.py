"""A network over a graph that is never in memory whole: layer by layer, in blocks of rows.

What nodes hand to their neighbours is kept in an array for all nodes, in memory or in a temporary
file; the rest exists for a block at a time. The result is that of the whole graph at once.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Bool, Int
from torch import Tensor, nn

from edgewise.graphs.blocks import stretches
from edgewise.graphs.edges_in_blocks import EdgesInBlocks
from edgewise.graphs.features import Features
from edgewise.nn.blocks import Block
from edgewise.nn.edge_state import EdgeState
from edgewise.nn.node_states import NodeStates, Take


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

    def input(self, edges: EdgesInBlocks, rows: Int[np.ndarray, " rows"]) -> Tensor:
        """What goes into the first block."""
        h = self.encode(edges.features(rows).to(edges.device))
        assert isinstance(h, Tensor)
        if self.incident is None:
            return h
        assert edges.sums is not None
        sums = edges.sums.entering(self.direction, rows).to(h)
        return h + self.incident(sums.log1p())


def computed_in_blocks(
    parts: Parts, edges: EdgesInBlocks, wanted: Int[Tensor, " wanted"], take: Take
) -> None:
    """Compute the output of the last block for some nodes.

    Args:
        parts: Of the network.
        edges: Of the graph.
        wanted: Nodes, ascending, each once.
        take: Called with the numbers of some nodes, in their order, and their outputs.
    """
    needed = _needed(edges, wanted.numpy(), len(parts.blocks) * parts.hops)
    states = [NodeStates(edges.num_nodes, edges.device)]  # of each layer: what its nodes project
    own: dict[int, NodeStates] = {}  # the input of blocks that read it once more
    for rows in _pieces(edges, needed.pop()):
        _keep(parts, 0, rows, parts.input(edges, rows), states[0], own, edges)
    for number, block in enumerate(parts.blocks):
        last = number == len(parts.blocks) - 1
        gathered = states[-1]
        for hop in range(parts.hops - 1, -1, -1):
            following = NodeStates(edges.num_nodes, edges.device)
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
                    take(rows, out)
                else:
                    _keep(parts, number + 1, rows, out, following, own, edges)
            needed.pop()
            gathered = following
        own.pop(number, None)
        if not _is_carried(block):
            states[-1].clear()
        states.append(gathered)


def _keep(
    parts: Parts,
    number: int,
    rows: Int[np.ndarray, " rows"],
    x: Tensor,
    states: NodeStates,
    own: dict[int, NodeStates],
    edges: EdgesInBlocks,
) -> None:
    """Keep what the block of this number reads of nodes."""
    block = parts.blocks[number]
    states.put(rows, block.layer.project(x))
    if block.reads_input:
        own.setdefault(number, NodeStates(edges.num_nodes, edges.device)).put(rows, x)


def _prepared(
    parts: Parts, number: int, states: list[NodeStates], nodes: np.ndarray, here: Any
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


def _needed(
    edges: EdgesInBlocks, wanted: np.ndarray, hops: int
) -> list[Bool[np.ndarray, " nodes"]]:
    """The nodes that are computed after each hop, and before the first: the last comes last."""
    mask = np.zeros(edges.num_nodes, dtype=np.bool_)
    mask[wanted] = True
    masks = [mask]
    for _ in range(hops):
        masks.append(edges.reached(masks[-1]))
    return masks


def _pieces(edges: EdgesInBlocks, mask: Bool[np.ndarray, " nodes"]) -> Iterator[np.ndarray]:
    """Nodes, in their order, as many at a time as a block holds."""
    nodes = np.flatnonzero(mask)
    for some in stretches(edges.cost(nodes)):
        yield nodes[some]
