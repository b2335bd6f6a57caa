"""Links of types, and links by time: nothing of what is predicted, or comes later, is seen."""

import csv

import numpy as np
import pytest
import torch
from edge_toys import written

import edgewise as ew
from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.data.sources import find_source
from edgewise.graphs.graph import Graph
from edgewise.tasks.base import load_task
from edgewise.tasks.link import link_ranks, link_task
from edgewise.training.fitting import fit_member
from edgewise.training.trainer import make_trainer, model_outputs
from edgewise.units.base import resolve

NODES, EDGES, LAST = 24, 200, 48
LINKS = {"predict": "links", "hidden": 8, "epochs": 2, "seed": 3}
TYPED = {**LINKS, "target": ["kind"], "ignore": ["when"]}
TIMED = {**LINKS, "time_column": "when", "ignore": ["kind"]}
BOTH = {**LINKS, "target": ["kind"], "time_column": "when"}


def messages(folder, change=lambda table: None):
    """Different pairs, in the order of time; those among near nodes are calls, others letters."""
    draw = np.random.default_rng(0)
    pairs = [(a, b) for a in range(NODES) for b in range(NODES) if a != b]
    order = draw.permutation(len(pairs))
    chosen = [pairs[i] for i in order[:EDGES]]
    table = {
        "source": [f"n{a}" for a, _ in chosen],
        "target": [f"n{b}" for _, b in chosen],
        "kind": ["call" if (b - a) % NODES < NODES // 2 else "letter" for a, b in chosen],
        "when": np.sort(draw.integers(LAST, size=EDGES)).tolist(),
        "unused": [pairs[i] for i in order[EDGES:]],
    }
    change(table)
    folder.mkdir(exist_ok=True, parents=True)
    written(folder / "edges.csv", {k: v for k, v in table.items() if k != "unused"})
    nodes = {"id": [f"n{i}" for i in range(NODES)], "size": list(range(NODES))}
    written(folder / "nodes.csv", nodes)
    return [str(folder / "nodes.csv"), str(folder / "edges.csv")]


def opened(places, **settings):
    source = find_source(places, "link")
    unit, resolved = resolve(source, "default", settings)
    return unit.open(source, resolved)


def trained(problem):
    trainer = make_trainer(problem)
    trainer.train_epoch(1)
    trainer.train_epoch(2)
    return trainer


def test_types_are_outputs_and_channels_and_those_of_hidden_links_are_not_seen(tmp_path):
    problem = opened(messages(tmp_path), **TYPED).problem
    assert problem.task.names == ("link", "kind=call", "kind=letter")
    assert problem.data.graph.channel_names == ("kind=call", "kind=letter")
    links = problem.data.link_of_row >= 0
    assert problem.truth[links, 1:].sum(dim=1).eq(1).all()  # each edge has one type
    assert problem.truth[~links].eq(0).all()
    held_out = torch.cat([problem.split.validation, problem.split.test])
    hidden = {*map(tuple, problem.data.pairs[:, held_out].T.tolist())}
    for batch in problem.data.evaluation_batches(torch.arange(len(problem.data))):
        assert not hidden & {*map(tuple, batch.edge_index.T.tolist())}


def test_types_of_validation_and_test_links_replaced_by_noise_change_nothing(tmp_path):
    first = opened(messages(tmp_path / "a"), **TYPED).problem
    held_out = torch.cat([first.split.validation, first.split.test])
    pairs = {*map(tuple, first.data.pairs[:, held_out].T.tolist())}
    draw = np.random.default_rng(5)

    def noise(table):
        for row, ends in enumerate(zip(table["source"], table["target"], strict=True)):
            if tuple(int(end[1:]) for end in ends) in pairs:
                table["kind"][row] = str(draw.choice(["call", "letter"]))

    second = opened(messages(tmp_path / "b", noise), **TYPED).problem
    assert not torch.equal(first.truth, second.truth)
    assert torch.equal(first.data.pairs, second.data.pairs)
    before, after = trained(first), trained(second)
    assert torch.equal(before.outputs(), after.outputs())


def test_the_type_of_a_link_changes_predictions_of_others_but_not_its_own(tmp_path):
    first = opened(messages(tmp_path / "a"), **TYPED).problem
    model = trained(first).model
    every = torch.arange(len(first.data))
    before = model_outputs(model, first, every)
    train = first.split.train
    for row in train[first.data.link_of_row[train] >= 0][:3].tolist():
        ends = [f"n{end}" for end in first.data.pairs[:, row].tolist()]

        def other(table, ends=ends):
            place = list(zip(table["source"], table["target"], strict=True)).index(tuple(ends))
            table["kind"][place] = {"call": "letter", "letter": "call"}[table["kind"][place]]

        second = opened(messages(tmp_path / "b", other), **TYPED).problem
        after = model_outputs(model, second, every)
        assert torch.equal(before[row], after[row])
        assert not torch.equal(before, after)


@pytest.mark.parametrize("settings", [TIMED, BOTH], ids=["links", "types"])
def test_what_happens_later_changes_no_earlier_prediction(tmp_path, settings):
    first = opened(messages(tmp_path / "a"), **settings).problem
    start = int(first.data.times.row[first.split.test].min())
    draw = np.random.default_rng(5)

    def noise(table):
        for row, (a, b) in zip(range(EDGES - 1, -1, -1), table["unused"], strict=False):
            if table["when"][row] >= start:
                table["source"][row], table["target"][row] = f"n{a}", f"n{b}"
                table["kind"][row] = str(draw.choice(["call", "letter"]))

    second = opened(messages(tmp_path / "b", noise), **settings).problem
    known = torch.cat([first.split.train, first.split.validation])
    assert torch.equal(known, torch.cat([second.split.train, second.split.validation]))
    assert torch.equal(first.data.pairs[:, known], second.data.pairs[:, known])
    assert not torch.equal(first.data.pairs, second.data.pairs)
    before, after = trained(first), trained(second)
    for name, weight in before.model.state_dict().items():
        assert torch.equal(weight, after.model.state_dict()[name]), name
    assert torch.equal(before.outputs(known), after.outputs(known))


@pytest.mark.parametrize("settings", [TIMED, BOTH], ids=["links", "types"])
def test_by_time_messages_come_from_earlier_edges_and_parts_follow_one_another(tmp_path, settings):
    found = opened(messages(tmp_path), **settings)
    data, split = found.problem.data, found.problem.split
    when = data.times.row
    assert when[split.train].max() < when[split.validation].min()
    assert when[split.validation].max() < when[split.test].min()
    edge_time = {
        pair: time
        for pair, time in zip(
            map(tuple, data.graph.edge_index.T.tolist()), data.times.edge.tolist(), strict=True
        )
    }
    for batch in data.evaluation_batches(torch.arange(len(data))):
        carried = [edge_time[pair] for pair in map(tuple, batch.edge_index.T.tolist())]
        assert max(carried, default=-1) < when[batch.place].min()
    for rows, batch in data.training_batches(split.train, 64):
        links = rows[data.link_of_row[rows] >= 0]
        carried = [edge_time[pair] for pair in map(tuple, batch.edge_index.T.tolist())]
        assert max(carried, default=-1) < when[links].min()
    assert any("by time (when): links are predicted along" in note for note in found.notes)
    assert not found.notices


def test_pairs_without_an_edge_have_none_up_to_that_time_but_may_have_one_later(tmp_path):
    data = opened(messages(tmp_path), **TIMED).problem.data
    times, later = data.times, 0
    first = dict(
        zip(map(tuple, data.graph.edge_index.T.tolist()), times.edge.tolist(), strict=True)
    )
    for row in (data.link_of_row < 0).nonzero()[:, 0].tolist():
        at = first.get(tuple(data.pairs[:, row].tolist()))
        later += at is not None
        assert at is None or at > times.row[row]
    assert later  # what comes later was not looked at


def purchases(folder):
    """Thirty customers buy products of one shelf of four, mostly: that of their number."""
    draw = np.random.default_rng(0)
    pairs = np.stack([draw.integers(30, size=2000), draw.integers(80, size=2000)], axis=1)
    when = np.flatnonzero((pairs[:, 0] % 4 == pairs[:, 1] % 4) | (draw.random(2000) < 0.03))
    source, target = pairs[when].T
    table = {
        "source": [f"c{i}" for i in source],
        "target": [f"p{i}" for i in target],
        "when": when.tolist(),
    }
    written(folder / "edges.csv", table)
    names = [f"c{i}" for i in range(30)] + [f"p{i}" for i in range(80)]
    kinds = ["customer"] * 30 + [f"shelf {i % 4}" for i in range(80)]
    written(folder / "nodes.csv", {"id": names, "kind": kinds})
    return [str(folder / "nodes.csv"), str(folder / "edges.csv")]


@pytest.mark.slow
def test_later_links_are_ranked_as_well_as_by_who_knows_what_each_node_likes(tmp_path):
    problem = opened(purchases(tmp_path), predict="links", time_column="when").problem
    fitting = fit_member(problem)
    for part in ("validation", "test"):
        rows = problem.split.parts()[part]
        found = problem.task.decode(fitting.trainer.outputs(rows)).numpy()
        truth, names = problem.truth[rows].numpy(), problem.data.graph.node_ids
        likes = [
            names[a][0] == "c"
            and names[b][0] == "p"
            and int(names[a][1:]) % 4 == int(names[b][1:]) % 4
            for a, b in problem.data.pairs[:, rows].T.tolist()
        ]
        best = problem.task.score(np.array(likes, dtype=float)[:, None], truth)
        assert best > 0.85
        assert problem.task.score(found, truth) > best - 0.03


def test_a_random_split_of_links_with_times_is_told(tmp_path):
    (notice,) = opened(messages(tmp_path), **TYPED).notices
    assert "links are predicted from later ones; --time-column when splits by time" in notice
    (tmp_path / "split.json").write_text(
        '{"train": [150, 151, 152], "validation": [3], "test": [4, 5]}'
    )
    split = {"split": str(tmp_path / "split.json")}
    (notice,) = opened(messages(tmp_path), **TIMED, **split).notices
    assert "some training links are later than validation or test links" in notice


def test_each_type_is_ranked_among_pairs_without_an_edge():
    task = link_task("kind", ("a", "b"))
    truth = np.array([[1, 1, 0], [0, 0, 0], [0, 0, 0], [1, 0, 1], [0, 0, 0]], dtype=np.float32)
    score = np.array(
        [[0.9, 0.2, 0.9], [0.1, 0.3, 0.1], [0.2, 0.1, 0.1], [0.3, 0.1, 0.9], [0.4, 0.5, 0.1]]
    )
    ranks = link_ranks(score, truth)
    assert [places.tolist() for places in ranks] == [[1, 2], [2], [1]]
    found = task.metrics(score, truth)
    assert found["per_target"]["kind=a"]["mrr"] == 0.5
    assert found["mrr"] == pytest.approx((0.75 + 0.5 + 1) / 3)
    assert found["type_accuracy"] == 0.5
    assert load_task(task.to_json()) == task
    assert load_task({"kind": "link", "names": ["link"]}) == link_task()


def rows(path):
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
def test_pairs_and_recommendations_have_types(tmp_path):
    places = messages(tmp_path)
    run = ew.train(places, tmp_path / "run", **BOTH)
    out, pairs, ids = (tmp_path / name for name in ("out.csv", "pairs.csv", "ids.csv"))
    again = tmp_path / "again.csv"
    runs.predict(run.folder, out=again)
    names = [f"{name}_probability" for name in ("link", "kind=call", "kind=letter")]
    for name in names:
        assert [r[name] for r in rows(again)] == [
            r[name] for r in rows(run.folder / "predictions.csv")
        ]
    pairs.write_text("source,target\nn0,n1\nn5,n3\n")
    assert runs.predict(run.folder, out=out, pairs=pairs) == (2, 0)
    plain = rows(out)
    assert list(plain[0]) == ["source", "target", *names]
    pairs.write_text("source,target,kind\nn0,n1,letter\nn5,n3,\n")
    runs.predict(run.folder, out=out, pairs=pairs)
    typed = rows(out)
    assert typed[0]["link_probability"] == plain[0]["kind=letter_probability"]
    assert typed[1]["link_probability"] == plain[1]["link_probability"]
    pairs.write_text("source,target,kind\nn0,n1,fax\n")
    with pytest.raises(EdgewiseError, match=r"pairs\.csv:2: 'fax' is no type of links"):
        runs.predict(run.folder, out=out, pairs=pairs)
    ids.write_text("id\nn3\nn4\n")
    assert runs.predict(run.folder, out=out, top=5, ids=ids) == (10, 0)
    best = rows(out)
    joined = {(row["source"], row["target"]) for row in rows(places[1])}
    assert not joined & {(row["source"], row["target"]) for row in best}
    assert {row["kind"] for row in best} <= {"call", "letter"}
    of_first = [float(row["link_probability"]) for row in best[:5]]
    assert of_first == sorted(of_first, reverse=True)


def test_types_that_are_not_known_are_not_asked_for(tmp_path):
    def gaps(table):
        table["kind"][:40] = [""] * 40

    problem = opened(messages(tmp_path, gaps), **TYPED).problem
    links = problem.truth[problem.data.link_of_row >= 0]
    assert links[:, 0].eq(1).all()
    assert int(links[:, 1].isnan().sum()) == 40
    assert make_trainer(problem).train_epoch(1) > 0


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"target": ["kind", "when"]}, "one column names the types of links"),
        ({"target": ["size"]}, "has no column 'size'"),
        ({"target": ["source"]}, "names ends of edges, not their type"),
        ({"split_column": "kind"}, "leave out split_column"),
        ({"time_column": "kind", "target": []}, "column 'kind' holds no times"),
        ({"time_column": "when", "stratify": True}, "cannot be balanced"),
        ({"weighted": True}, r"\[weighted\] does not apply here: this is links"),
        ({"label_messages": True}, r"\[label_messages\] does not apply here"),
        ({"duplicates": "sum"}, "duplicates = sum merges edges, which are what messages go along"),
        ({"reciprocal": "max", "directed": False}, "reciprocal = max merges edges"),
    ],
)
def test_mistakes_are_sentences(tmp_path, settings, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        opened(messages(tmp_path), **{**LINKS, **settings})


def test_a_graph_without_columns_has_neither_types_nor_times():
    with pytest.raises(EdgewiseError, match=r"the edges have no columns, such as \[when\]"):
        opened(["cora"], **LINKS, time_column="when")


def test_the_estimator_learns_types():
    ring = torch.arange(30)
    ends = torch.stack([torch.cat([ring, ring]), torch.cat([(ring + 1) % 30, (ring + 9) % 30])])
    graph = Graph(torch.eye(30), ends)
    kinds = ["next"] * 30 + ["far"] * 30
    model = ew.LinkPredictor(epochs=2, hidden=8).fit(graph, kinds)
    assert model.types_ == ("far", "next")
    assert model.predict_type_proba([[0, 5], [5, 0]]).shape == (2, 2)
    assert model.predict_proba([[0, 5]]).shape == (1,)
    assert len(model.recommend([0], top=3)[0]) == 3
    with pytest.raises(EdgewiseError, match="but the graph has 60 edges"):
        ew.LinkPredictor(epochs=2).fit(graph, kinds[:5])
    plain = ew.LinkPredictor(epochs=1, hidden=8).fit(graph)
    with pytest.raises(EdgewiseError, match="the links have no types"):
        plain.predict_type_proba([[0, 5]])
