"""Errors of nodes come with their neighbours, errors of molecules with their structures."""

import inspect
from types import SimpleNamespace

import numpy as np
import torch

from edgewise.core.registries import UNITS
from edgewise.data.sources import MoleculeFileSource
from edgewise.graphs.graph import Graph
from edgewise.report.unit_views import (
    UNIT_VIEWS,
    EdgeView,
    GraphView,
    MoleculeView,
    NodeView,
    WorstRows,
    unit_view,
)
from edgewise.tasks.records import WorstError

EDGES = [(0, 1), (1, 0), (0, 2), (3, 0), (0, 0), (4, 5), (5, 4)]
TRUTH = np.array([0, 0, 1, 1, 2, -1])
IDS = [f"n{k}" for k in range(6)]
FACTS = [("true", "a"), ("predicted", "b"), ("probability", "90 %")]


def problem():
    graph = Graph(torch.eye(6), torch.tensor(EDGES).T)
    return SimpleNamespace(data=SimpleNamespace(graph=graph, pairs=graph.edge_index))


def wrong_class(row, true, predicted):
    return WorstError(row, str(true), str(predicted), 0.9, 0, class_numbers=(true, predicted))


def test_the_views_have_the_same_methods():
    signatures = [
        {n: str(inspect.signature(m)) for n, m in inspect.getmembers(type(v), inspect.isfunction)}
        for v in UNIT_VIEWS.values()
    ]
    assert all(signature == signatures[0] for signature in signatures)


def test_every_unit_names_its_view():
    found = {name: type(unit_view(UNITS[name].error_view)) for name in UNITS}
    assert found == {"node": NodeView, "edge": EdgeView, "link": EdgeView, "graph": GraphView}


def test_molecules_have_a_view_of_their_own():
    assert type(unit_view(MoleculeFileSource.row_view)) is MoleculeView


def test_graphs_are_shown_with_their_sizes():
    data = SimpleNamespace(node_offset=torch.tensor([0, 3, 7]), edge_offset=torch.tensor([0, 0, 9]))
    error = WorstError(1, "a", "b", 0.9, 0)
    view, problem = GraphView(), SimpleNamespace(data=data)
    table = view.error_content(WorstRows([error], [FACTS], ["g", "CCO"], TRUTH, problem))["table"]
    assert list(table.header) == ["graph", "true", "predicted", "probability", "nodes", "edges"]
    assert table.rows == [["CCO", "a", "b", "90 %", "4", "9"]]


def test_neighbours_are_counted_once_and_in_either_direction():
    errors = [wrong_class(0, 0, 1), wrong_class(4, 2, 0)]
    table = NodeView().error_content(WorstRows(errors, [FACTS] * 2, IDS, TRUTH, problem()))["table"]
    assert table.header[-3:] == ["neighbours", "of the true class", "of the predicted class"]
    for error, row in zip(errors, table.rows, strict=True):
        near = {j for i, j in EDGES if i == error.row} | {i for i, j in EDGES if j == error.row}
        near -= {error.row}
        expected = [len(near), *(sum(TRUTH[n] == k for n in near) for k in error.class_numbers)]
        assert row == [IDS[error.row], "a", "b", "90 %", *map(str, expected)]
    assert table.words == 3


def test_without_the_data_there_are_no_neighbours():
    table = NodeView().error_content(WorstRows([wrong_class(0, 0, 1)], [FACTS], IDS, TRUTH, None))[
        "table"
    ]
    assert list(table.header) == ["node", "true", "predicted", "probability"]


def test_values_of_nodes_are_columns_of_numbers_and_targets_are_named():
    error = WorstError(1, 1.5, 2.5, 1.0, 0, target="size")
    facts = [("observed", "1.500"), ("predicted", "2.500"), ("error", "+1.000")]
    table = NodeView().error_content(WorstRows([error], [facts], IDS, TRUTH, problem()))["table"]
    assert list(table.header) == ["node", "target", "observed", "predicted", "error"]
    assert (table.words, table.rows[0][:2]) == (2, ["n1", "size"])


def test_edges_come_with_both_ends_and_the_edges_around_them():
    error = wrong_class(1, 0, 1)
    ids = [f"{IDS[i]} -> {IDS[j]}" for i, j in EDGES]
    table = EdgeView().error_content(WorstRows([error], [FACTS], ids, TRUTH, problem()))["table"]
    ends = EDGES[1]
    around = [sum(end in edge for edge in EDGES) for end in ends]
    both = sum(ends[0] in edge and ends[1] in edge for edge in EDGES)
    assert table.rows == [[ids[1], "a", "b", "90 %", *map(str, (*around, both))]]
    without = EdgeView().error_content(WorstRows([error], [FACTS], ids, TRUTH, None))["table"]
    assert list(without.header) == ["edge", "true", "predicted", "probability"]


def test_molecules_are_drawn_where_they_can_be_read():
    errors = [WorstError(k, 1.0, 2.0, 1.0, 0, target="t") for k in (0, 1)]
    ids = ["CCO", "<not a molecule>"]
    first, second = MoleculeView().error_content(WorstRows(errors, [FACTS] * 2, ids, TRUTH, None))[
        "cards"
    ]
    assert first.drawing.label == "Structure of CCO"
    assert "var(--bad)" in first.drawing.body  # oxygen
    assert (second.drawing, second.name, second.target) == (None, "<not a molecule>", "t")
