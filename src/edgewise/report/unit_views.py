"""What a report shows of single rows: nodes with neighbours, edges with ends, molecules drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.report.blocks import Drawing, TableData
from edgewise.report.molecule_drawings import draw_molecule
from edgewise.report.wording import shortened
from edgewise.tasks.records import WorstError

Facts = Sequence[tuple[str, str]]  # about an error, by name


@dataclass(frozen=True)
class ErrorCard:
    """A molecule that was predicted wrongly."""

    drawing: Drawing | None
    target: str
    facts: Facts
    name: str


@dataclass(frozen=True, eq=False)
class WorstRows:
    """What a view may show of the worst errors.

    Args:
        errors: The worst first.
        facts: About each.
        ids: The name of each row.
        truth: Of all rows.
        problem: The opened problem, or None where the data are unavailable.
    """

    errors: Sequence[WorstError]
    facts: Sequence[Facts]
    ids: Sequence[str]
    truth: np.ndarray
    problem: Any | None


class NodeView:
    """Nodes of a graph."""

    template = "error_table.html.jinja"

    def error_content(self, worst: WorstRows) -> dict[str, Any]:
        """A table; of classes, with those of the neighbours."""
        header, rows, words = _error_rows("node", worst)
        errors, problem = worst.errors, worst.problem
        if problem is not None and all(error.class_numbers for error in errors):
            header += ["neighbours", "of the true class", "of the predicted class"]
            for row, error in zip(rows, errors, strict=True):
                near = problem.data.graph.neighbors(error.row)
                row += _neighbour_counts(near, worst.truth, error)
        return {"table": TableData("The worst errors", header, rows, words)}


class EdgeView:
    """Edges of a graph."""

    template = "error_table.html.jinja"

    def error_content(self, worst: WorstRows) -> dict[str, Any]:
        """A table with both ends of each edge, and how many edges there are around it."""
        header, rows, words = _error_rows("edge", worst)
        problem = worst.problem
        if problem is not None:
            header += ["edges of its source", "of its target", "between both"]
            source, target = problem.data.graph.edge_index.numpy()
            pairs = problem.data.pairs.numpy()
            for row, error in zip(rows, worst.errors, strict=True):
                at_source, at_target = (
                    (source == end) | (target == end) for end in pairs[:, error.row]
                )
                counts = at_source.sum(), at_target.sum(), (at_source & at_target).sum()
                row += [f"{int(n):,}" for n in counts]
        return {"table": TableData("The worst errors", header, rows, words)}


class MoleculeView:
    """Molecules of a table."""

    template = "error_cards.html.jinja"

    def error_content(self, worst: WorstRows) -> dict[str, Any]:
        """A card for each molecule, with its structure where RDKit is installed."""
        ids = worst.ids
        cards = [
            ErrorCard(draw_molecule(ids[e.row]), e.target, shown, shortened(ids[e.row], 160))
            for e, shown in zip(worst.errors, worst.facts, strict=True)
        ]
        return {"cards": cards}


class GraphView:
    """Graphs that are not molecules."""

    template = "error_table.html.jinja"

    def error_content(self, worst: WorstRows) -> dict[str, Any]:
        """A table, with the number of nodes and edges of each graph."""
        header, rows, words = _error_rows("graph", worst)
        problem = worst.problem
        if problem is not None:
            header += ["nodes", "edges"]
            nodes, edges = (
                offset.diff().tolist()
                for offset in (problem.data.node_offset, problem.data.edge_offset)
            )
            for row, error in zip(rows, worst.errors, strict=True):
                row += [f"{nodes[error.row]:,}", f"{edges[error.row]:,}"]
        return {"table": TableData("The worst errors", header, rows, words)}


AnyUnitView = NodeView | EdgeView | MoleculeView | GraphView
UNIT_VIEWS: dict[str, AnyUnitView] = {
    "nodes": NodeView(),
    "edges": EdgeView(),
    "structures": MoleculeView(),
    "graphs": GraphView(),
}


def unit_view(name: str) -> AnyUnitView:
    """The view that a unit names as its ``error_view``."""
    return UNIT_VIEWS[name]


def _error_rows(word: str, worst: WorstRows) -> tuple[list[str], list[list[str]], int]:
    """Header and rows of a table of errors, and how many of its columns hold words."""
    errors, facts, ids = worst.errors, worst.facts, worst.ids
    several = any(error.target for error in errors)
    header = [word, *(["target"] if several else []), *(name for name, _ in facts[0])]
    in_words = all(isinstance(error.predicted, str) for error in errors)
    rows = [
        [
            shortened(ids[error.row], 60),
            *([error.target] if several else []),
            *(value for _, value in shown),
        ]
        for error, shown in zip(errors, facts, strict=True)
    ]
    return header, rows, 1 + several + (2 if in_words else 0)


def _neighbour_counts(near: np.ndarray, truth: np.ndarray, error: WorstError) -> list[str]:
    """All neighbours of a node, those of its true class and those of the predicted one."""
    assert error.class_numbers is not None
    counts = (int((truth[near] == number).sum()) for number in error.class_numbers)
    return [f"{n:,}" for n in (len(near), *counts)]
