"""Nodes that are trained by sampled neighbours: reproducible, and the same for any number of
processes.
"""

import pytest
import torch
from sampled_toys import hub_graph

import edgewise as ew
from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import make_settings
from edgewise.core.seeds import seeded
from edgewise.data.graph_files import save_graph
from edgewise.data.graph_store import write_store
from edgewise.data.splits import Split
from edgewise.graphs import sampled_graph
from edgewise.graphs.array_graph import ArrayGraph
from edgewise.graphs.graph import single_precision
from edgewise.graphs.sampled_graph import SampledGraph
from edgewise.graphs.share import Share
from edgewise.tasks.reading import find_label_task
from edgewise.training.fitting import Fitting
from edgewise.training.trainer import make_trainer
from edgewise.units.fan_outs import fan_outs
from edgewise.units.node import node_problem


def problem(graph=None, **settings):
    graph = single_precision(hub_graph()) if graph is None else graph
    task, truth = find_label_task("class", graph.y, graph.class_names, "auto")
    split = Split(*(torch.arange(30)[start::3] for start in range(3)))
    given = {"neighbors": "3,2", "batch_size": 4, "hidden": 4, **settings}
    return node_problem(graph, task, truth, split, make_settings("node", **given))[0]


def trained(given, epochs=3):
    fitting = Fitting(make_trainer(given))
    for _ in range(epochs):
        fitting.step()
    return fitting.tensors()


def test_training_is_the_same_whether_batches_are_made_ahead_or_when_they_are_needed(monkeypatch):
    first = trained(problem())
    monkeypatch.setattr(sampled_graph, "prefetched", lambda make, count: map(make, range(count)))
    again = trained(problem())
    assert first.keys() == again.keys()
    assert all(torch.equal(tensor, again[name]) for name, tensor in first.items())


def test_training_goes_on_from_a_checkpoint_with_the_same_bits():
    whole, stopped = trained(problem(), 3), trained(problem(), 2)
    fitting = Fitting(make_trainer(problem()))
    fitting.restore(stopped)
    fitting.step()
    assert all(torch.equal(tensor, whole[name]) for name, tensor in fitting.tensors().items())


@pytest.mark.parametrize("more", [{}, {"normalize": "doubly_stochastic"}, {"layer": "gated"}])
def test_what_a_node_is_computed_from_does_not_depend_on_the_process_that_computes_it(more):
    given = problem(hub_graph(), dropout=0.0, **more)
    model = make_trainer(given).model.double()

    def outputs(*share):
        with seeded(0, 0, 1):
            batches = given.data.training_batches(given.split.train, 4, *share)
            return [model(batch) for _, batch in batches]

    shares = [outputs(Share(rank, 2)) for rank in range(2)]
    for whole, *parts in zip(outputs(), *shares, strict=True):
        torch.testing.assert_close(torch.cat(parts), whole, rtol=0, atol=1e-12)


def test_the_network_of_sampled_nodes_is_judged_exactly():
    given = problem()
    assert isinstance(given.data, SampledGraph)
    trainer = make_trainer(given)
    whole = make_trainer(problem(neighbors="", batch_size=64, normalize="row", dropout=0.2))
    torch.testing.assert_close(trainer.outputs(), whole.outputs())


@pytest.mark.slow
def test_a_store_is_trained_on_and_predicted_as_the_graph_in_memory_is(tmp_path):
    graph = single_precision(hub_graph())
    names = [graph.class_names[number] for number in graph.y]
    write_store(tmp_path / "store", ArrayGraph.of(graph), {"class": names})
    save_graph(graph, tmp_path / "graph.safetensors")
    settings = {"neighbors": "3,2", "batch_size": 8, "hidden": 4, "epochs": 3}
    stored = ew.train(tmp_path / "store", tmp_path / "a", **settings)
    whole = ew.train(tmp_path / "graph.safetensors", tmp_path / "b", **settings)
    for split in ("validation", "test"):
        assert stored.metrics[split]["log_loss"] == whole.metrics[split]["log_loss"]


def test_a_sampled_estimator_learns_and_predicts():
    graph = single_precision(hub_graph())
    x = torch.nn.functional.one_hot(graph.y).float()
    graph = ew.Graph(x, graph.edge_index, graph.edge_attr)
    model = ew.NodeClassifier(graph=graph, neighbors="3,2", batch_size=8, epochs=40, dropout=0.0)
    rows, labels = torch.arange(20).numpy(), hub_graph().y[:20].numpy()
    assert model.fit(rows, labels).score(rows, labels) > 0.8


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"neighbors": "3,x"}, r"'3,x' is no list of fan-outs; give whole numbers above 0"),
        ({"neighbors": "0"}, r"is no list of fan-outs"),
        ({"neighbors": "3,3,3"}, r"fan-outs for 3 layers, but depth = 2; give one for each layer"),
        ({"layer": "attention", "normalize": "symmetric"}, r"set normalize = row"),
    ],
)
def test_fan_outs_that_do_not_fit_are_refused(settings, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        problem(**{"neighbors": "3,2", **settings})


def test_a_regime_is_chosen_on_the_whole_graph_alone():
    with pytest.raises(EdgewiseError, match="tries networks of several depths on the whole graph"):
        fan_outs(make_settings("node", neighbors="3", regime="auto"))
