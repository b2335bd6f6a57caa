"""Direction is decided in training and stored; scales are learnt from the rows asked for."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import make_settings
from edgewise.data.sources import find_source
from edgewise.data.splits import given_split
from edgewise.graphs.graph import Graph
from edgewise.tasks.classification import Classification
from edgewise.training import fit_member, load_model, make_predictor
from edgewise.units.base import resolve
from edgewise.units.node import NODE, node_problem

RING = torch.stack([torch.arange(6), (torch.arange(6) + 1) % 6])
BOTH_WAYS = torch.cat([RING, RING.flip(0)], dim=1)


def problem_of(edge_index, edge_attr=None, **settings):
    generator = torch.Generator().manual_seed(0)
    graph = Graph(torch.rand(8, 4, generator=generator), edge_index, edge_attr)
    task, truth = Classification(("y",), ("a", "b")), torch.arange(8) % 2
    rows = torch.arange(8)
    split = given_split(rows, rows[:0], rows[:0])
    settings = make_settings("node", **{"directed": False, "epochs": 3, **settings})
    return node_problem(graph, task, truth, split, settings)


def trained(edge_index, **settings):
    problem, _ = problem_of(edge_index, **settings)
    return make_predictor(problem, (fit_member(problem).trainer.model,)), problem


def edges_of(edge_index, edge_attr=None):
    """The row-normalised matrix that a network without direction propagates along."""
    problem, _ = problem_of(edge_index, edge_attr, normalize="row")
    model = NODE.network(4, 2, 1, problem.settings)
    edges = problem.data.batch().edges.encoded(model.direction)
    return edges.prepared(model.blocks[0].layer).to_dense()[..., 0]


def test_without_direction_an_edge_weighs_the_same_written_once_or_both_ways():
    once, values = torch.tensor([[0, 1, 3], [1, 2, 0]]), torch.tensor([[1.0], [0.5], [0.2]])
    twice = torch.cat([once, once.flip(0)], dim=1)
    assert_close(edges_of(twice, values.repeat(2, 1)), edges_of(once, values))


def test_without_direction_a_pair_that_is_joined_both_ways_among_others_weighs_the_sum():
    edges = edges_of(torch.tensor([[0, 3, 2], [3, 0, 3]]))
    assert edges[3, :4].tolist() == [0.5, 0.0, 0.25, 0.25]  # two ways, none, one way, the loop


@pytest.mark.parametrize(
    ("edge_index", "join", "why"),
    [
        (BOTH_WAYS, "max", "every edge has an equal reverse edge"),
        (RING, "sum", "edges go one way"),
        (BOTH_WAYS[:, :-1], "sum", "edges go one way"),
    ],
)
def test_how_directions_join_is_decided_once_told_and_stored(edge_index, join, why, tmp_path):
    problem, notes = problem_of(edge_index)
    assert problem.settings.model.reciprocal == join
    assert [note for note in notes if why in note and f"--reciprocal {join}" in note]
    model, _ = trained(edge_index)
    model.save(tmp_path)
    again = load_model(tmp_path)
    assert again.settings.model.reciprocal == join
    assert again.members[0].direction == join


@pytest.mark.parametrize("join", ["sum", "max"])
def test_how_directions_join_can_be_said(join):
    for edge_index in (RING, BOTH_WAYS):
        problem, notes = problem_of(edge_index, reciprocal=join)
        assert problem.settings.model.reciprocal == join
        assert not [note for note in notes if "--reciprocal" in note]


def test_directions_that_are_kept_apart_cannot_be_joined():
    with pytest.raises(EdgewiseError, match=r"reciprocal = max joins.*set directed = false"):
        problem_of(RING, directed=True, reciprocal="max")


def test_edges_both_ways_that_are_encoded_with_direction_are_told():
    _, notes = problem_of(BOTH_WAYS, directed=True)
    assert [note for note in notes if "--no-directed" in note]
    assert not problem_of(RING, directed=True)[1]


@pytest.mark.parametrize("layer", ["conv", "attention"])
@pytest.mark.parametrize("normalize", ["row", "doubly_stochastic"])
def test_an_unrelated_one_way_edge_changes_no_other_node(layer, normalize):
    model, problem = trained(BOTH_WAYS, layer=layer, normalize=normalize, hidden=3)
    before = model.predict(problem.data).mean
    # Nodes 6 and 7 are joined to nothing but, now, each other and one way.
    more = torch.cat([BOTH_WAYS, torch.tensor([[6], [7]])], dim=1)
    graph = Graph(problem.data.graph.x, more)
    after = model.predict(graph).mean
    np.testing.assert_allclose(after[:6], before[:6], rtol=1e-6)
    assert (after[6:] != before[6:]).any(axis=1).all()
    # The truth of version 0.1, which looked at each graph anew: every node changes.
    anew = NODE.network(4, 2, 1, problem.settings.changed(reciprocal="auto")).eval()
    assert anew.direction == "by_symmetry"
    anew.load_state_dict(model.members[0].state_dict())
    old = make_predictor(problem, (anew,))
    np.testing.assert_allclose(old.predict(problem.data).mean, before, rtol=1e-6)
    assert (np.abs(old.predict(graph).mean - before)[:6] > 1e-4).any()


def test_a_missing_reverse_edge_changes_nothing_where_the_larger_counts():
    model, problem = trained(BOTH_WAYS, hidden=3)
    fewer = Graph(problem.data.graph.x, BOTH_WAYS[:, :-1])
    np.testing.assert_array_equal(model.predict(fewer).mean, model.predict(problem.data).mean)


AGES = [1.0, 2.0, 3.0, 10.0, 20.0, 90.0]


def tables(folder):
    parts = ["train"] * 3 + ["validation", "test", "test"]
    colours, words = ["red", "blue", "red", "blue", "red", "blue"], ["cat dog"] * 3 + ["cat"] * 3
    rows = [
        f"n{i},{age},{colours[i]},{words[i]} w{i % 3},{'ab'[i % 2]},{parts[i]}"
        for i, age in enumerate(AGES)
    ]
    (folder / "nodes.csv").write_text("\n".join(["id,age,colour,words,y,part", *rows]))
    (folder / "edges.csv").write_text("source,target\nn0,n1\nn1,n2\nn3,n4\nn4,n5\n")
    return find_source([str(folder)])


def learnt(folder, **settings):
    source = tables(folder)
    given = {"target": ["y"], "split_column": "part", "text": ["words"], **settings}
    unit, resolved = resolve(source, "default", given)
    problem = unit.open(source, resolved).problem
    return problem, {column.name: column for column in problem.encoder.features}


@pytest.mark.parametrize(
    ("settings", "rows"), [({}, 3), ({"fit_on": "train"}, 3), ({"fit_on": "all"}, 6)]
)
def test_scales_are_learnt_from_the_training_rows_or_from_all(settings, rows, tmp_path):
    problem, columns = learnt(tmp_path, **settings)
    assert len(problem.split.train) == 3
    ages = np.array(AGES[:rows])
    assert columns["age"].mean == pytest.approx(ages.mean())
    assert columns["age"].scale == pytest.approx(ages.std())
    place = columns["age"].outputs
    assert len(place) == 1
    x = problem.data.graph.x
    scaled = (np.array(AGES) - ages.mean()) / ages.std()
    hits = [i for i in range(x.size(1)) if np.allclose(x[:, i], scaled, atol=1e-5)]
    assert len(hits) == 1
