"""Pairs of nodes that no edge joins, drawn to be told from those that one does."""

import torch
from jaxtyping import Int
from torch import Tensor

_TRIES = 30


class NegativeSampler:
    """Draws pairs that look like edges: uniform targets, targets of other edges, reversed edges.

    Args:
        edge_index: All edges that are known: none of them is drawn.
        num_nodes: Number of nodes.
        directed: Whether an edge the other way is another one.
        nodes: The numbers of those that may be drawn; without it all.
    """

    def __init__(
        self, edge_index: Tensor, num_nodes: int, *, directed: bool, nodes: Tensor | None = None
    ) -> None:
        self.num_nodes, self.directed = num_nodes, directed
        self.nodes = torch.arange(num_nodes) if nodes is None else nodes
        source, target = edge_index
        both = edge_index if directed else torch.cat([edge_index, edge_index.flip(0)], dim=1)
        self.targets = target if directed else torch.cat([source, target])
        self.known = (both[0] * num_nodes + both[1]).unique()

    def draw(
        self,
        pairs: Int[Tensor, "2 pairs"],
        *,
        reverse: float = 0.25,
        generator: torch.Generator | None = None,
    ) -> Int[Tensor, "2 pairs"]:
        """One pair for each that is given: with the same source, or reversed.

        Half of the targets are uniform, half are those of random edges, so that popular nodes are
        as frequent among them as among edges.

        Args:
            pairs: Edges.
            reverse: Share of those that are turned around, where that is no edge.
            generator: Of random numbers; without it torch's own.
        """
        count, device = pairs.size(1), pairs.device

        def uniform() -> Tensor:
            return torch.rand(count, generator=generator, device=device)

        drawn = pairs.clone()
        wrong = torch.ones(count, dtype=torch.bool, device=device)
        turned = (uniform() < reverse) & self.directed
        candidate = torch.where(turned, pairs.flip(0), drawn)
        drawn, wrong = candidate, self._is_edge(candidate)
        for _ in range(_TRIES):
            if not wrong.any():
                break
            popular = self.targets[(uniform() * len(self.targets)).long()]
            anybody = self.nodes[(uniform() * len(self.nodes)).long()]
            target = torch.where(uniform() < 0.5, popular, anybody)
            candidate = torch.stack([pairs[0], target])
            drawn = torch.where(wrong, candidate, drawn)
            wrong = wrong & self._is_edge(drawn)
        return drawn

    def _is_edge(self, pairs: Tensor) -> Tensor:
        """Whether a pair is an edge, or one node alone."""
        key = pairs[0] * self.num_nodes + pairs[1]
        place = torch.searchsorted(self.known, key).clamp(max=max(len(self.known) - 1, 0))
        return (pairs[0] == pairs[1]) | (self.known[place] == key)
