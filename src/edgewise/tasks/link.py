"""Whether there is an edge between two nodes, and of which types: binary labels that rank pairs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.tasks.metrics import Metrics
from edgewise.tasks.multilabel import Multilabel
from edgewise.tasks.records import Ranking

HITS = (1, 3, 10)
ANY = "link"  # the label of a pair that some edge joins


@dataclass(frozen=True)
class Link(Multilabel):
    """Links; a row with an edge is followed by those without one that it is ranked among.

    Args:
        names: ``link``, and for each type its column and its name, see :func:`link_task`.
        column: Of the edges, that names the types; empty: there are none.
        types: Their names.
    """

    column: str = ""
    types: tuple[str, ...] = ()

    name = "link"
    settings = frozenset()
    role = "Predictor"
    panels = (
        *("learning", "labels", "ranking", "probabilities", "uncertainty", "time", "balance"),
        *("embeddings", "worst-errors", "metrics", "settings", "provenance"),
    )
    output_metrics = (
        *("roc_auc", "average_precision", "mrr", "accuracy", "log_loss", "positives", "rows"),
    )

    def __str__(self) -> str:
        return f"links of {len(self.types)} types ({self.column})" if self.types else "links"

    def describe(self) -> str:
        return f"Prediction of {self}"

    def metrics(self, predicted: np.ndarray, truth: np.ndarray) -> Metrics:
        """Those of binary labels and of the ranking, for each output, and their means."""
        found = super().metrics(predicted, truth)
        per_target = found.pop("per_target")
        ranking = [_ranking_metrics(ranks) for ranks in link_ranks(predicted, truth)]
        for name, own in zip(self.names, ranking, strict=True):
            per_target[name] = {**per_target[name], **own}
        for name in ranking[0]:
            known = [own[name] for own in ranking if own[name] is not None]
            found[name] = sum(known) / len(known) if known else None
        if self.types:
            found["type_accuracy"] = type_accuracy(predicted[:, 1:], truth[:, 1:])
        return {**found, "per_target": per_target}

    def rankings(self, truth: np.ndarray, predicted: np.ndarray) -> tuple[Ranking, ...]:
        starts = np.flatnonzero((truth == 1).any(axis=1))
        most = int(np.diff([*starts, len(truth)]).max()) if len(starts) else 0
        found = zip(self.names, link_ranks(predicted, truth), strict=True)
        return tuple(Ranking(name, ranks, most) for name, ranks in found if len(ranks))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Link":
        # What was trained before there were types says nothing of them.
        column, types = content.get("column", ""), content.get("types", ())
        return link_task(str(column), tuple(map(str, types)))


def link_task(column: str = "", types: tuple[str, ...] = ()) -> Link:
    """The task of links, of types where a column names any.

    Example:
        >>> link_task("kind", ("cites", "extends")).names
        ('link', 'kind=cites', 'kind=extends')
    """
    return Link((ANY, *(f"{column}={name}" for name in types)), column, types)


def link_ranks(score: np.ndarray, truth: np.ndarray) -> list[np.ndarray]:
    """For each output the places of the links that have it, among the pairs behind them.

    Args:
        score: ``[rows, outputs]``.
        truth: Of the same shape; a row in which a 1 stands is a link, and those behind it, without
            one, are what it is ranked among.

    Returns:
        For each output an array; 1 is the first place, and ties share one.
    """
    starts = (truth == 1).any(axis=1)
    group = np.cumsum(starts) - 1
    inside, links = group >= 0, np.flatnonzero(starts)
    group = group[inside]
    others = np.bincount(group, minlength=len(links)) - 1
    places = []
    for own, true in zip(score.T, truth.T, strict=True):
        of_link = own[links][group]
        above = np.bincount(group, own[inside] > of_link, minlength=len(links))
        equal = np.bincount(group, own[inside] == of_link, minlength=len(links)) - 1
        places.append((1 + above + equal / 2)[(others > 0) & (true[links] == 1)])
    return places


def type_accuracy(score: np.ndarray, truth: np.ndarray) -> float | None:
    """How often the likeliest type is one of the link's, among those that are asked for."""
    links = (truth == 1).any(axis=1)
    if not links.any():
        return None
    asked = np.where(np.isnan(truth[links]), -np.inf, score[links])
    best = asked.argmax(axis=1)
    return float((truth[links][np.arange(len(best)), best] == 1).mean())


def _ranking_metrics(ranks: np.ndarray) -> Metrics:
    if not len(ranks):
        return {"mrr": None, **{f"hits_at_{most}": None for most in HITS}}
    hits = {f"hits_at_{most}": float((ranks <= most).mean()) for most in HITS}
    return {"mrr": float((1 / ranks).mean()), **hits}
