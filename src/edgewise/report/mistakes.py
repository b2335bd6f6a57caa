"""The worst mistakes: classes that were sure and wrong, values that were far off."""

from dataclasses import dataclass

import numpy as np

from edgewise.problems import NodeProblem, Problem
from edgewise.report.markup import Markup, element, shortened, table
from edgewise.report.molecules_drawn import draw_molecule
from edgewise.report.results import Results
from edgewise.report.wording import number, share

MOST = 12


@dataclass(frozen=True)
class Mistake:
    """A row that was predicted wrongly."""

    row: int
    true: str
    predicted: str
    size: str  # how sure, or how far off
    of: str = ""  # the label or target, where there are several


def worst_mistakes(results: Results, most: int = MOST) -> list[Mistake]:
    """The worst first; those of one size in the order of their rows."""
    rows = results.rows(results.judged)
    if results.task.kind == "classification":
        return _classes(results, rows)[:most]
    if results.task.kind == "multilabel":
        return _labels(results, rows)[:most]
    return _values(results, rows, most)


def _classes(results: Results, rows: np.ndarray) -> list[Mistake]:
    rows = rows[results.truth[rows] >= 0]
    found, classes = results.predicted[rows].argmax(axis=1), results.task.classes
    sure = results.predicted[rows].max(axis=1)
    wrong = np.flatnonzero(found != results.truth[rows])
    return [
        Mistake(
            int(rows[k]),
            classes[results.truth[rows[k]]],
            classes[found[k]],
            share(float(sure[k])) + _spread(results, int(rows[k]), None),
        )
        for k in wrong[np.argsort(-sure[wrong], kind="stable")]
    ]


def _labels(results: Results, rows: np.ndarray) -> list[Mistake]:
    miss = np.abs(results.predicted[rows] - results.truth[rows])
    wrong = np.argwhere(miss > 0.5)
    wrong = wrong[np.argsort(-miss[wrong[:, 0], wrong[:, 1]], kind="stable")]
    names = results.task.names
    return [
        Mistake(
            int(rows[k]),
            "yes" if results.truth[rows[k], j] else "no",
            "no" if results.truth[rows[k], j] else "yes",
            share(float(miss[k, j])) + _spread(results, int(rows[k]), int(j)),
            names[j] if len(names) > 1 else "",
        )
        for k, j in wrong
    ]


def _values(results: Results, rows: np.ndarray, most: int) -> list[Mistake]:
    error = results.predicted[rows] - results.truth[rows]
    # Targets are of different sizes; their spread is the measure they have in common.
    size = np.abs(error) / (np.nanstd(results.truth, axis=0) + 1e-300)
    places = np.argwhere(~np.isnan(error))
    places = places[np.argsort(-size[places[:, 0], places[:, 1]], kind="stable")][:most]
    names = results.task.names
    return [
        Mistake(
            int(rows[k]),
            number(float(results.truth[rows[k], j])),
            number(float(results.predicted[rows[k], j])) + _spread(results, int(rows[k]), int(j)),
            f"{'+' if error[k, j] > 0 else ''}{number(float(error[k, j]))}",
            names[j] if len(names) > 1 else "",
        )
        for k, j in places
    ]


def _spread(results: Results, row: int, output: int | None) -> str:
    if results.spread is None:
        return ""
    value = float(results.spread[row] if output is None else results.spread[row, output])
    shares = results.task.kind != "regression"
    return f" ± {100 * value:.1f}" if shares else f" ± {number(value)}"


def mistakes_section(results: Results, problem: Problem | None) -> Markup:
    """Molecules as cards, nodes as a table."""
    mistakes = worst_mistakes(results)
    if not mistakes:
        return element("p", f"None: every {results.judged} row is predicted right.")
    regression = results.task.kind == "regression"
    told = "off by" if regression else "how sure"
    intro = element(
        "p",
        f"The {len(mistakes)} largest errors of the {results.judged} part."
        if regression
        else f"The {len(mistakes)} {results.judged} rows that were wrong and most sure of it.",
    )
    if results.molecules:
        cards = [_card(results, mistake, told) for mistake in mistakes]
        return element("div", intro, element("div", *cards, class_="cards"))
    header = ["node", "true", "predicted", told]
    cells = [[shortened(results.ids[m.row], 60), m.true, m.predicted, m.size] for m in mistakes]
    if isinstance(problem, NodeProblem) and results.task.kind == "classification":
        header += ["neighbours", "of the true class", "of the predicted one"]
        for row, mistake in zip(cells, mistakes, strict=True):
            row += _neighbours(results, problem, mistake)
    return element("div", intro, table(header, cells, words=3, label="The worst mistakes"))


def _neighbours(results: Results, problem: NodeProblem, mistake: Mistake) -> list[str]:
    source, target = problem.graph.edge_index.numpy()
    near = np.concatenate([target[source == mistake.row], source[target == mistake.row]])
    near = np.unique(near[near != mistake.row])
    number_of = {name: k for k, name in enumerate(results.task.classes)}
    truth = results.truth[near]
    counts = (int((truth == number_of[name]).sum()) for name in (mistake.true, mistake.predicted))
    return [str(len(near)), *(str(n) for n in counts)]


def _card(results: Results, mistake: Mistake, told: str) -> Markup:
    smiles = results.ids[mistake.row]
    facts = [("true", mistake.true), ("predicted", mistake.predicted), (told, mistake.size)]
    listed = (element("div", element("dt", name), element("dd", value)) for name, value in facts)
    return element(
        "article",
        draw_molecule(smiles) or "",
        element("h3", mistake.of) if mistake.of else "",
        element("dl", *listed),
        element("code", shortened(smiles, 160)),
    )
