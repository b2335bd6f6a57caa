"""The walks of hubs.py hub by hub, for graphs whose running sums no cache would hold.

There, all nodes are walked through in the order of their scores, and every hub keeps running sums:
on a large graph each step waits for memory. Here one hub is walked through after the other. Most
have few members, and all pairs of these are gone through. The members of the others are sorted by
their scores, as sources and as targets, and the rank of a target is how many sources of the hub
stand above the kink with it: sums over sources are kept for every rank, and targets read those of
theirs. A hub's sums are in the nearest cache, and the rows of its members are fetched ahead.

What scales rows and columns of ``M`` scales the factors of ``f`` here, ``[channels, nodes, 2]``:
those below the kink and those above it. Links stand one hub after the other, channel by channel.
Rows of nodes are ``[nodes, groups, width]``; channel ``q`` reads group ``q * groups // channels``.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numba import prange
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from edgewise.kernels import backend
from edgewise.kernels.backend import unsigned
from edgewise.kernels.hub_sorting import sort_members
from edgewise.kernels.hub_sums import walk_sums
from edgewise.kernels.hubs import Array, descending, register
from edgewise.kernels.pattern import Pattern
from edgewise.kernels.sorted_gradients import walk_gradients
from edgewise.kernels.sorted_walks import walk_products

Rows = Float[Tensor, "nodes _ width"]
Pairs = Float[Tensor, "channels nodes 2"]
Links = Float[Tensor, " links"]


@dataclass(frozen=True, eq=False)
class Side:
    """The sources or the targets of a product: which links join them, with which factors."""

    link: Links
    factor: Pairs


@dataclass(frozen=True, eq=False)
class SortedHubs:
    """The hubs of one ``B``, with their members in the order of one pair of scores."""

    start: NDArray[np.uint64]  # where the links of each hub begin, by channel
    parts: NDArray[np.uint64]  # [parts + 1, channels], the first hub of each part
    node: NDArray[np.uint32]  # of each link
    score: Array  # [heads, nodes, 2], of targets and sources
    order: NDArray[np.uint32]  # [2, links], the members of large hubs: sources, and targets
    rank: NDArray[np.uint32]  # [2, links], how many of the other side come before them

    def sums(
        self, inputs: Side, outputs: Side, *, sources_are_inputs: bool, grad_link: Links | None
    ) -> Pairs:
        """The sum over the inputs of every output's hubs, below the kink and above it.

        Times the factors of the output, and added up, it is ``M 1``, or ``M^T 1``.
        """
        link, factor = inputs.link.numpy(), inputs.factor.numpy()
        out = inputs.factor.new_empty(len(self.parts) - 1, *factor.shape)
        side = 0 if sources_are_inputs else 1
        grads = out.new_empty(0) if grad_link is None else grad_link
        with backend.running:
            walk_sums(self.start, self.parts, self.node, self.score, self.order[side],
                      self.rank[1 - side], np.uint64(side), link, factor, outputs.factor.numpy(),
                      out.numpy(), grads.numpy())  # fmt: skip
        return out[0] if len(out) == 1 else out.sum(0)

    def product(self, z: Rows, inputs: Side, outputs: Side, *, sources_are_inputs: bool) -> Rows:
        """``M z``, or ``M^T z`` where the inputs are targets."""
        rows, lanes = _rows(z)
        out, side = self._new_rows(z, rows), 0 if sources_are_inputs else 1
        with backend.running:
            walk_products(self.start, self.parts, self.node, self.order[side],
                          self.rank[1 - side], np.uint64(side), inputs.link.numpy(),
                          outputs.link.numpy(), inputs.factor.numpy(), outputs.factor.numpy(),
                          rows.numpy(), np.uint64(z.size(1)), _by_part(out), lanes)  # fmt: skip
        return _by_node(out, z)

    def product_and_gains(
        self, z: Rows, other: Rows, inputs: Side, outputs: Side, *, sources_are_inputs: bool,
        grad_links: tuple[Links, Links] | None,
    ) -> tuple[Rows, Pairs, Pairs]:  # fmt: skip
        """The product, and what inputs and outputs gain by ``M_ij (z_j . other_i)`` of each pair.

        The gradients of the links of the inputs and of the outputs are added to ``grad_links``.
        """
        (rows, lanes), (other_rows, _) = _rows(z), _rows(other)
        out, side = self._new_rows(z, rows), 0 if sources_are_inputs else 1
        gains = z.new_empty(2, len(self.parts) - 1, *inputs.factor.shape)
        grads = (z.new_empty(0), z.new_empty(0)) if grad_links is None else grad_links
        both = (side, 1 - side)
        with backend.running:
            walk_gradients(self.start, self.parts, self.node, self.score,
                           tuple(self.order[k] for k in both), tuple(self.rank[k] for k in both),
                           np.uint64(side), (inputs.link.numpy(), outputs.link.numpy()),
                           (inputs.factor.numpy(), outputs.factor.numpy()), rows.numpy(),
                           np.uint64(z.size(1)), other_rows.numpy(), np.uint64(other.size(1)),
                           _by_part(out), tuple(gains.numpy()), tuple(g.numpy() for g in grads),
                           lanes)  # fmt: skip
        of_inputs, of_outputs = gains[:, 0] if gains.size(1) == 1 else gains.sum(1)
        return _by_node(out, z), of_inputs, of_outputs

    def _new_rows(self, z: Rows, rows: Tensor) -> Float[Tensor, "*parts nodes channels _"]:
        """Zeros for each part of the hubs; without a dimension for parts if there is one."""
        parts, channels = self.parts.shape
        several = [] if parts == 2 else [parts - 1]
        return z.new_zeros(*several, len(z), channels, rows.size(1))


def sorted_hubs(
    pattern: Pattern, target: Float[Tensor, "nodes heads"], source: Float[Tensor, "nodes heads"]
) -> SortedHubs:
    """Sort the members of large hubs by their scores."""
    node, _ = pattern.hub_links
    order, rank = np.empty((2, 2, len(node)), np.uint32)
    start, parts = unsigned(pattern.hub_start), unsigned(pattern.hub_parts)
    with backend.running:
        sort_members(start, parts, unsigned(node), _places(source, target), tuple(order),
                     tuple(rank))  # fmt: skip
    score = torch.stack([target.T, source.T], dim=2).contiguous().numpy()
    return SortedHubs(start, parts, unsigned(node), score, order, rank)


def masked_links(
    pattern: Pattern, link: Links, kept: Tensor | None, scale: float
) -> tuple[Links, Links]:
    """The links under each of two masks."""
    if kept is None:
        return link, link
    first, second = torch.empty_like(link), torch.empty_like(link)
    with backend.running:
        _mask(link.numpy(), kept.numpy(), unsigned(pattern.hub_links[1]), scale, first.numpy(),
              second.numpy())  # fmt: skip
    return first, second


@backend.jit(parallel=True)
def _mask(link, kept, entry, scale, first, second):  # type: ignore[no-untyped-def]
    scale = link.dtype.type(scale)
    for p in prange(len(link)):
        bits, scaled = kept[entry[p]], scale * link[p]
        first[p] = scaled if bits & 1 else 0
        second[p] = scaled if bits & 2 else 0


def _places(source: Tensor, target: Tensor) -> NDArray[np.uint32]:
    """``[heads, 2 nodes]``: the places of sources, and of targets, from the highest score down."""
    order = descending(torch.cat([source, -target]).numpy())
    place = np.empty(order.shape[::-1], np.uint32)
    with backend.running:
        _invert(order, place)
    return place


@backend.jit(parallel=True)
def _invert(order, place):  # type: ignore[no-untyped-def]
    for k in prange(len(order)):
        for head in range(order.shape[1]):
            place[head, order[k, head]] = k


def _by_part(out: Float[Tensor, "*parts nodes channels _"]) -> Array:
    parts = out if out.dim() == 4 else out.unsqueeze(0)
    return parts.flatten(1, 2).numpy()


def _by_node(out: Float[Tensor, "*parts nodes channels _"], z: Rows) -> Rows:
    """The sum of all parts, without the padding."""
    total = out if out.dim() == 3 else out.sum(0)
    return total if total.size(2) == z.size(2) else total[..., : z.size(2)]


def _rows(z: Rows) -> tuple[Float[Tensor, "rows _"], tuple[int, ...]]:
    """The rows of all nodes, padded with zeros to registers, and a tuple as long as one of them."""
    lanes = register(z.size(2))
    missing = -z.size(2) % len(lanes)
    return (pad(z, (0, missing)) if missing else z.contiguous()).flatten(0, 1), lanes
