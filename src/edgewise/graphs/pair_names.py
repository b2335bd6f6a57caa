"""The names of pairs of nodes, which are made when they are asked for: there may be many."""

from collections.abc import Sequence
from typing import overload

from jaxtyping import Int
from torch import Tensor


class PairNames(Sequence[str]):
    """A name for each pair of nodes.

    Args:
        pairs: The numbers of the nodes.
        nodes: Their names; without it they are named by their numbers.

    Example:
        >>> PairNames(torch.tensor([[0, 1], [1, 1]]), ("alice", "bob"))[0]
        'alice -> bob'
    """

    def __init__(self, pairs: Int[Tensor, "2 pairs"], nodes: Sequence[str] | None) -> None:
        self._pairs, self._nodes = pairs, nodes

    def __len__(self) -> int:
        return self._pairs.size(1)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [pair_name(*ends) for ends in zip(*self.ends(place), strict=True)]
        place = range(len(self))[place]
        return self[place : place + 1][0]

    def ends(self, rows: slice) -> tuple[list[str], list[str]]:
        """The names of both nodes of some pairs."""
        first, second = (self._names(end) for end in self._pairs[:, rows].tolist())
        return first, second

    def _names(self, numbers: list[int]) -> list[str]:
        if self._nodes is None:
            return list(map(str, numbers))
        return [self._nodes[number] for number in numbers]


def pair_name(source: str, target: str) -> str:
    """``alice -> bob``."""
    return f"{source} -> {target}"
