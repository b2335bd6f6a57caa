"""Which regime a graph gets is decided on its validation rows, and stored."""

import json

import numpy as np
import pytest
import torch

from edgewise import EdgeClassifier, Graph, MultiGraph, NodeClassifier, make_settings, runs
from edgewise.core.declarations import REGIMES
from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import PORTFOLIO, decided_settings
from edgewise.data.graph_files import save_graph
from edgewise.data.splits import Split
from edgewise.tasks.classification import Classification
from edgewise.training import Fitting, fit_member, make_trainer, portfolio
from edgewise.training.portfolio import decided
from edgewise.training.trainer import Trainer
from edgewise.units.node import node_problem


@pytest.fixture
def graph():
    """Two rings; a node's class is that of its feature, but for some noise."""
    random = torch.Generator().manual_seed(0)
    ring = torch.arange(30)
    one = torch.stack([ring, (ring + 1) % 30])
    y = torch.arange(60) // 30
    x = torch.randn(60, 4, generator=random)
    x[:, 0] += y
    return Graph(x, torch.cat([one, one + 30], dim=1), y=y, class_names=("a", "b"))


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """The same machinery with networks that train in a moment."""
    small = {"shallow": {"hidden": 3}, "wide": {"hidden": 4, "depth": 3}, "gated": {"hidden": 5}}
    monkeypatch.setitem(PORTFOLIO, "node", small)
    monkeypatch.setattr(portfolio, "RUNGS", (3, 6))
    monkeypatch.setattr(portfolio, "WINDOW", 4)


def problem_of(graph, validation=True, **changes):
    rows = torch.randperm(60, generator=torch.Generator().manual_seed(1))
    parts = rows.split([30, 20, 10]) if validation else (rows[:50], rows[:0], rows[50:])
    task = Classification(("y",), graph.class_names)
    settings = make_settings("node", **{"epochs": 10, **changes})
    return node_problem(graph, task, graph.y, Split(*parts), settings)[0]


def slow_choice(problem):
    """Each regime alone, from its start, to each rung."""
    left = list(PORTFOLIO["node"])
    for epochs in portfolio.RUNGS:
        scores = {}
        for name in left:
            fitting = Fitting(make_trainer(portfolio.regimes_of(problem)[name]))
            history = [fitting.step() for _ in range(epochs)]
            found = [epoch.validation_score for epoch in history]
            width = min(portfolio.WINDOW, len(found))
            means = [sum(found[k : k + width]) / width for k in range(len(found) - width + 1)]
            scores[name] = max(means)
        left = sorted(left, key=lambda name: -scores[name])[: (len(left) + 1) // 2]
    return left[0]


@pytest.mark.slow
def test_the_choice_is_that_of_training_each_alone(graph):
    told = []
    problem = problem_of(graph)
    chosen = decided(problem, tell=told.append)
    name = slow_choice(problem)
    assert chosen.settings.model.regime == name
    assert chosen.settings.model.hidden == PORTFOLIO["node"][name]["hidden"]
    assert told[0].startswith(f"regime {name}, chosen by validation accuracy: ")


@pytest.mark.slow
def test_a_regime_that_was_chosen_trains_as_one_that_was_named(graph):
    chosen = decided(problem_of(graph))
    named = problem_of(graph, regime=chosen.settings.model.regime)
    assert named.settings == chosen.settings
    assert fit_member(named).history == fit_member(chosen).history


def test_of_regimes_with_equal_means_the_simpler_one_is_chosen(graph, monkeypatch):
    scores = [0.8, 0.8, 0.9, 0.9]  # whose sums round otherwise in another order
    epochs = {3: iter(scores), 4: iter(scores[::-1]), 5: iter([0.1] * 4)}

    def validate(trainer):
        return 1.0, next(epochs[trainer.settings.model.hidden])

    monkeypatch.setattr(portfolio, "RUNGS", (4,))
    monkeypatch.setattr(Trainer, "validate", validate)
    assert decided(problem_of(graph)).settings.model.regime == "shallow"


def test_without_validation_rows_it_is_the_first(graph):
    told = []
    assert decided(problem_of(graph, False), tell=told.append).settings.model.regime == "shallow"
    assert "no validation rows" in told[0]


def test_what_diverges_is_rejected_and_if_all_do_it_is_said(graph, monkeypatch):
    wild = {"learning_rate": 1e38}
    monkeypatch.setitem(PORTFOLIO["node"], "wide", wild)
    monkeypatch.setitem(PORTFOLIO["node"], "gated", wild)
    assert decided(problem_of(graph)).settings.model.regime == "shallow"
    monkeypatch.setitem(PORTFOLIO["node"], "shallow", wild)
    with pytest.raises(EdgewiseError, match="diverged in every regime"):
        decided(problem_of(graph))


@pytest.mark.slow
def test_a_run_killed_while_it_chooses_is_resumed_to_the_same_bits(graph, tmp_path):
    save_graph(graph, tmp_path / "g.safetensors")
    given = {"epochs": 4, "seed": 3}
    whole = runs.train(tmp_path / "g.safetensors", tmp_path / "whole", **given)
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > 5

    with pytest.raises(EdgewiseError, match="before a regime was chosen"):
        runs.train(tmp_path / "g.safetensors", tmp_path / "cut", stop=stop, **given)
    recipe = json.loads((tmp_path / "cut" / "recipe.json").read_text())
    assert recipe["settings"]["model"]["regime"] == "auto"
    resumed = runs.resume(tmp_path / "cut")
    assert resumed.settings == whole.settings
    assert resumed.settings.model.regime in REGIMES
    for name in ("predictions.csv", "history.csv", "model.safetensors", "model.json"):
        assert (whole.folder / name).read_bytes() == (resumed.folder / name).read_bytes()
    assert runs.evaluate(whole.folder)["test"] == whole.metrics["test"]
    assert f"regime {whole.settings.model.regime}" in (whole.folder / "report.html").read_text()


def test_an_estimator_chooses_too(graph):
    model = NodeClassifier(graph=graph, epochs=4).fit(np.arange(60), graph.y.numpy())
    assert model.fitted_.settings.model.regime in REGIMES


def test_whoever_sets_what_a_regime_decides_has_chosen(graph):
    assert make_settings("node").model.regime == "auto"
    assert make_settings("node", epochs=3, seed=1).model.regime == "auto"
    assert make_settings("node", hidden=8).model.regime == "given"
    assert make_settings("node", "fast").model.regime == "given"
    assert make_settings("node", "paper").model.regime == "given"
    with pytest.raises(EdgewiseError, match="auto decides about hidden"):
        make_settings("node", regime="auto", hidden=8)
    assert make_settings("node", regime="wide", depth=9).model.depth == 9


def test_early_stopping_by_the_score_keeps_the_epoch_with_the_best_one(graph):
    by_loss = fit_member(problem_of(graph, hidden=4, learning_rate=0.05))
    by_score = fit_member(problem_of(graph, hidden=4, learning_rate=0.05, monitor="score"))
    assert by_loss.best.validation_loss == min(e.validation_loss for e in by_loss.history)
    best = max(e.validation_score for e in by_score.history)
    assert by_score.best.validation_score == best
    equal = [e.validation_loss for e in by_score.history if e.validation_score == best]
    assert by_score.best.validation_loss == min(equal)


def test_the_last_epoch_is_kept_where_asked_for_unless_training_ends_before_it(graph):
    settings = {"hidden": 4, "learning_rate": 0.05, "monitor": "last"}
    ended = fit_member(problem_of(graph, epochs=30, patience=30, **settings))
    assert ended.best.number == 30
    assert ended.best.validation_loss > min(e.validation_loss for e in ended.history)
    stopped = fit_member(problem_of(graph, epochs=30, patience=3, **settings))
    assert len(stopped.history) < 30
    assert stopped.best.number == len(stopped.history) - 3
    assert stopped.best.validation_loss == min(e.validation_loss for e in stopped.history)


def test_incident_edges_reach_the_nodes():
    """Nodes with equal features, in a network without any other way to see a channel's sum."""
    from edgewise import Batch, ChannelNetwork
    from edgewise.core.declarations import ModelSettings

    settings = ModelSettings(encoder="linear", incident=True, directed=False, hidden=4)
    model = ChannelNetwork(2, 3, 1, settings)
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    attr = torch.tensor([[1.0], [2.0], [3.0]])
    batch = Batch.of(torch.ones(3, 2), edges, attr)
    hidden = []
    model.blocks[0].register_forward_pre_hook(lambda _, given: hidden.append(given[0]))
    model.eval()(batch)
    total = torch.tensor([[3.0 + 1], [1.0 + 2], [2.0 + 3]]).log1p()
    expected = model.encoder(torch.ones(3, 2)) + total @ model.incident.weight.T
    torch.testing.assert_close(hidden[0], expected)
    with pytest.raises(EdgewiseError, match="set encoder = linear"):
        ChannelNetwork(2, 3, 1, ModelSettings(incident=True))


def test_the_portfolio_decides_only_about_settings_that_exist():
    assert decided_settings("node") <= make_settings("node").flat().keys()


def rings(sizes, seed=0):
    """Rings of nodes that are all alike, each edge both ways; an edge has its ring's size."""
    random = torch.Generator().manual_seed(seed)
    first, edges, size = 0, [], []
    for nodes in sizes:
        ring = torch.arange(nodes)
        one = torch.stack([ring, (ring + 1) % nodes]) + first
        edges += [one, one.flip(0)]
        size += [nodes] * 2 * nodes
        first += nodes
    amount = torch.rand(len(size), 1, generator=random)
    return MultiGraph(torch.ones(first, 1), torch.cat(edges, dim=1), amount), np.array(size)


def test_edges_are_told_of_paths_where_these_decide(monkeypatch):
    """Layers cannot tell three nodes of six in a ring from three that are one: paths of two can."""
    monkeypatch.setattr(portfolio, "RUNGS", (15,))
    graph, size = rings([3, 3, 6] * 20)
    rows = np.arange(len(size))
    given = {"graph": graph, "epochs": 40, "hidden": 16, "seed": 0}
    model = EdgeClassifier(**given).fit(rows[::2], np.where(size == 3, "short", "long")[::2])
    assert model.fitted_.settings.model.regime == "paths"
    assert (model.predict(rows) == np.where(size == 3, "short", "long")).mean() == 1
    direct = EdgeClassifier(**given, regime="direct")
    direct.fit(rows[::2], np.where(size == 3, "short", "long")[::2])
    assert not direct.fitted_.settings.model.paths
    assert (direct.predict(rows) == np.where(size == 3, "short", "long")).mean() < 0.7


def test_edges_are_not_told_of_paths_where_these_do_not_help(monkeypatch):
    monkeypatch.setattr(portfolio, "RUNGS", (15,))
    graph, size = rings([3, 3, 6] * 10)
    large = np.where(graph.channels[:, 0].numpy() > 0.5, "large", "small")
    model = EdgeClassifier(graph=graph, epochs=40, hidden=16, seed=0)
    model.fit(np.arange(0, len(size), 2), large[::2])
    assert model.fitted_.settings.model.regime == "direct"


def test_a_regime_of_another_unit_is_refused():
    with pytest.raises(EdgewiseError, match="regime = deep is not for the unit edge; choose one"):
        make_settings("edge", regime="deep")
    with pytest.raises(EdgewiseError, match="regime = paths is not for the unit node"):
        make_settings("node", regime="paths")
