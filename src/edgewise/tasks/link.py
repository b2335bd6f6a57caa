"""Whether there is an edge between two nodes: a binary label, and a place in a ranking."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from edgewise.tasks.metrics import Metrics
from edgewise.tasks.multilabel import Multilabel

HITS = (1, 3, 10)


@dataclass(frozen=True)
class Link(Multilabel):
    """Links; a row with an edge is followed by those without one that it is ranked among."""

    name = "link"
    settings = frozenset()
    role = "Predictor"

    def __str__(self) -> str:
        return "links"

    def describe(self) -> str:
        return "Prediction of links"

    def metrics(self, predicted: np.ndarray, truth: np.ndarray) -> Metrics:
        found = super().metrics(predicted, truth)
        ranks = link_ranks(predicted[:, 0], truth[:, 0])
        ranking: Metrics = {"mrr": float((1 / ranks).mean()) if len(ranks) else None}
        for most in HITS:
            ranking[f"hits_at_{most}"] = float((ranks <= most).mean()) if len(ranks) else None
        return {**{k: v for k, v in found.items() if k != "per_target"}, **ranking,
                "per_target": found["per_target"]}  # fmt: skip


def link_ranks(score: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The place of each link among the pairs behind it, 1 for the first; ties share a place."""
    links = np.flatnonzero(truth == 1)
    bounds = [*links, len(truth)]
    ranks = []
    for start, end in pairwise(bounds):
        others = score[start + 1 : end]
        if len(others):
            above, equal = (others > score[start]).sum(), (others == score[start]).sum()
            ranks.append(1 + above + equal / 2)
    return np.array(ranks)
