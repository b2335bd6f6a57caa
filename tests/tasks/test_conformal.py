"""Prediction intervals and sets hold the truth as often as they say."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from edgewise import Graph, NodeClassifier, NodeRegressor, runs
from edgewise.core.errors import EdgewiseError
from edgewise.core.manifest import write_manifest
from edgewise.data.splits import Split
from edgewise.tasks.base import Prediction
from edgewise.tasks.classification import Classification
from edgewise.tasks.conformal import calibrated, conformal_quantile, coverage_metrics
from edgewise.tasks.multilabel import Multilabel
from edgewise.tasks.prediction import load_conformal
from edgewise.tasks.regression import Regression
from edgewise.training import load_model

RANDOM = np.random.default_rng


def split_of(train, validation, test):
    parts = torch.arange(train + validation + test).split([train, validation, test])
    return Split(*parts)


def slow_quantile(scores, percent):
    """The smallest score that covers enough of the scores, counted in whole numbers."""
    need = -((len(scores) + 1) * percent // -100)
    for score in sorted(scores):
        if sum(other <= score for other in scores) >= need:
            return score
    return math.inf


@pytest.mark.parametrize("percent", [50, 80, 90, 95, 99])
def test_the_quantile_is_the_one_that_is_counted_out(percent):
    for count in [*range(1, 31), 99, 100, 199]:
        scores = RANDOM(count).normal(size=count)
        assert conformal_quantile(scores, percent / 100) == slow_quantile(scores, percent)


def test_nine_rows_bound_an_interval_of_ninety_percent_and_eight_do_not():
    assert conformal_quantile(np.arange(9.0), 0.9) == 8
    assert conformal_quantile(np.arange(8.0), 0.9) == math.inf


def test_an_interval_ends_where_the_error_of_a_single_model_is_the_quantile():
    mean, truth = RANDOM(0).normal(size=(40, 2)), RANDOM(1).normal(size=(40, 2))
    truth[::3, 1] = math.nan
    task, split = Regression(("a", "b")), split_of(10, 25, 5)
    found = calibrated(task, Prediction(mean, None), truth, split, 0.8)
    for i in range(2):
        errors = [abs(t - m) for t, m in zip(truth[10:35, i], mean[10:35, i], strict=True)]
        half = slow_quantile([e for e in errors if not math.isnan(e)], 80)
        ends = np.stack([mean[:, i] - half, mean[:, i] + half], axis=1)
        assert task.intervals(found)[:, i] == pytest.approx(ends)
    assert found.conformal.rows == (25, int((~np.isnan(truth[10:35, 1])).sum()))


def test_intervals_of_an_ensemble_are_wider_where_its_members_disagree():
    random = RANDOM(2)
    level = random.uniform(0.1, 3, size=(3000, 1))
    truth = random.normal(size=(3000, 1)) * level
    told = Prediction(np.zeros((3000, 1)), level)
    task, split = Regression(("y",)), split_of(1000, 1000, 1000)
    found = calibrated(task, told, truth, split, 0.9)
    width = np.diff(task.intervals(found)[:, 0], axis=1)[:, 0]
    assert np.all(np.diff(width[np.argsort(level[:, 0])]) >= 0)
    plain = calibrated(task, replace(told, deviation=None), truth, split, 0.9)
    hard = level[2000:, 0] > 2
    inside = {
        name: (np.abs(truth[2000:, 0]) <= task.intervals(p)[2000:, 0, 1])[hard].mean()
        for name, p in (("ensemble", found), ("single", plain))
    }
    assert inside["ensemble"] > inside["single"] + 0.03  # the hard rows are not left out


def test_a_set_holds_the_classes_whose_probability_is_high_enough():
    random = RANDOM(3)
    mean = random.dirichlet(np.ones(4), size=60)
    truth = random.integers(-1, 4, size=60)
    task, split = Classification(("kind",), ("a", "b", "c", "d")), split_of(10, 40, 10)
    found = calibrated(task, Prediction(mean, None), truth, split, 0.7)
    scores = [1 - mean[row, truth[row]] for row in range(10, 50) if truth[row] >= 0]
    quantile = slow_quantile(scores, 70)
    sets = [[c for k, c in enumerate("abcd") if 1 - p[k] <= quantile] for p in mean]
    assert task.predicted_columns(found)["prediction_set"] == ["|".join(s) for s in sets]


def test_binary_labels_are_calibrated_for_each_answer():
    random = RANDOM(4)
    mean, truth = random.uniform(size=(200, 2)), random.integers(0, 2, size=(200, 2)).astype(float)
    truth[::4, 0] = math.nan
    task, split = Multilabel(("x", "y")), split_of(20, 150, 30)
    found = calibrated(task, Prediction(mean, None), truth, split, 0.9)
    for i in range(2):
        held = []
        for answer in (0, 1):
            rows = [row for row in range(20, 170) if truth[row, i] == answer]
            of_answer = [p if answer else 1 - p for p in mean[:, i]]
            quantile = slow_quantile([1 - of_answer[row] for row in rows], 90)
            held.append([1 - p <= quantile for p in of_answer])
        assert task.prediction_sets(found)[:, i].tolist() == np.transpose(held).tolist()


@pytest.mark.parametrize("task", ["regression", "classification", "multilabel"])
def test_ninety_percent_of_new_rows_are_covered_on_average(task):
    """Over many draws of calibration rows and new ones, whatever the model is worth."""
    made = {
        "regression": (Regression(("v",)), lambda r: (r.normal(size=(300, 1)),) * 2),
        "classification": (
            Classification(("k",), ("a", "b", "c")),
            lambda r: (r.dirichlet(np.ones(3), size=300), r.integers(0, 3, size=300)),
        ),
        "multilabel": (
            Multilabel(("l",)),
            lambda r: (r.uniform(size=(300, 1)), (r.uniform(size=(300, 1)) < 0.2).astype(float)),
        ),
    }
    task, draw = made[task]
    split, new = split_of(10, 99, 191), np.arange(109, 300)
    observed = []
    for seed in range(150):
        mean, truth = draw(RANDOM(seed))
        if truth is mean:
            truth = mean + RANDOM(seed + 1000).standard_t(3, size=mean.shape)
        found = calibrated(task, Prediction(mean, None), truth, split, 0.9)
        parts = coverage_metrics(task, found, truth, new)["coverage"].values()
        observed.append([part["observed"] for part in parts])
    mean = np.mean(observed, axis=0)
    # Few rows with a rare label make its quantile cautious, by at most one row of them.
    assert np.all(mean > 0.89)
    assert np.all(mean < 0.94)


def ring_of(nodes, seed):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, 3, generator=random)
    edges = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    noise = torch.randn(nodes, generator=random) * (0.2 + x[:, 1].abs())
    return Graph(x, edges), (x[:, 0] + x[:, 0].roll(1) + noise).numpy()


QUICK = {"epochs": 8, "hidden": 8, "dropout": 0.0, "validation_fraction": 0.4}


@pytest.mark.parametrize("ensemble", [1, 3])
def test_intervals_of_a_trained_model_cover_new_nodes(ensemble):
    graph, y = ring_of(4000, 0)
    model = NodeRegressor(graph=graph, ensemble=ensemble, **QUICK)
    model.fit(np.arange(2000), y[:2000])
    ends = model.predict_interval(np.arange(2000, 4000))
    inside = (ends[:, 0] <= y[2000:]) & (y[2000:] <= ends[:, 1])
    assert 0.87 < inside.mean() < 0.93


def test_sets_of_a_trained_model_cover_new_nodes():
    graph, y = ring_of(4000, 1)
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-1, 1])]
    model = NodeClassifier(graph=graph, **QUICK).fit(np.arange(2000), labels[:2000])
    sets = model.predict_set(np.arange(2000, 4000))
    place = np.searchsorted(model.classes_, labels[2000:])
    assert 0.87 < sets[np.arange(2000), place].mean() < 0.93


def test_without_validation_rows_or_coverage_there_are_no_intervals():
    graph, y = ring_of(60, 2)
    for given in ({"validation_fraction": 0}, {"coverage": 0}):
        model = NodeRegressor(graph=graph, **{**QUICK, **given}).fit(np.arange(60), y)
        with pytest.raises(EdgewiseError, match=r"no intervals .* fit it with validation rows"):
            model.predict_interval()


@pytest.fixture(scope="module")
def value_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("values")
    graph, y = ring_of(120, 3)
    nodes = ["id,f,g,v", *(f"{i},{a},{b},{v}" for i, (a, b, _), v in zip_rows(graph, y))]
    edges = ["source,target", *(f"{a},{b}" for a, b in graph.edge_index.T.tolist())]
    (folder / "nodes.csv").write_text("\n".join(nodes))
    (folder / "edges.csv").write_text("\n".join(edges))
    settings = {"epochs": 5, "hidden": 4, "ensemble": 2, "target": ("v",), "coverage": 0.75}
    return runs.train(folder, folder / "run", **settings)


def zip_rows(graph, y):
    return zip(range(len(y)), graph.x.tolist(), y, strict=True)


@pytest.mark.slow
def test_a_run_writes_intervals_and_their_coverage(value_run, tmp_path):
    with (value_run.folder / "predictions.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0])[2:] == ["v_true", "v_predicted", "v_std", "v_lower", "v_upper"]
    for part in ("validation", "test"):
        mine = [r for r in rows if r["split"] == part]
        inside = [float(r["v_lower"]) <= float(r["v_true"]) <= float(r["v_upper"]) for r in mine]
        said = value_run.metrics[part]["coverage"]["v"]
        assert (said["nominal"], said["rows"]) == (0.75, len(mine))
        assert said["observed"] == pytest.approx(np.mean(inside), abs=1.01 / len(mine))
    assert runs.evaluate(value_run.folder)["test"] == value_run.metrics["test"]
    runs.predict(value_run.folder, [], tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as stream:
        again = list(csv.DictReader(stream))
    assert [r["v_upper"] for r in again] == [r["v_upper"] for r in rows]
    assert "prediction interval holds the truth of 75.0" in (
        value_run.folder / "report.html"
    ).read_text().replace("\N{NO-BREAK SPACE}", " ")


def test_a_saved_calibration_is_read_back_or_refused(value_run, tmp_path):
    model = load_model(value_run.folder)
    assert model.conformal.coverage == 0.75
    model.save(tmp_path)
    assert load_model(tmp_path).conformal == model.conformal
    content = json.loads((tmp_path / "model.json").read_text())
    for damage in ({"quantiles": [1.0, 2.0]}, {"coverage": 7}, {"rows": [-1]}, {"offsets": [0, 1]}):
        broken = {**content, "conformal": {**content["conformal"], **damage}}
        (tmp_path / "model.json").write_text(json.dumps(broken))
        write_manifest(tmp_path, ["model.json"])
        with pytest.raises(EdgewiseError, match="conformal quantiles"):
            load_model(tmp_path)
    del content["conformal"]
    (tmp_path / "model.json").write_text(json.dumps(content))
    write_manifest(tmp_path, ["model.json"])
    assert load_model(tmp_path).conformal is None


def test_too_few_rows_are_written_as_an_infinite_interval_and_read_back():
    mean, truth = np.zeros((12, 1)), np.ones((12, 1))
    task = Regression(("v",))
    found = calibrated(task, Prediction(mean, None), truth, split_of(2, 5, 5), 0.9)
    columns = task.predicted_columns(found)
    assert (columns["v_lower"][0], columns["v_upper"][0]) == ("-inf", "inf")
    content = json.loads(json.dumps(found.conformal.to_json(), allow_nan=False))
    assert load_conformal(content, 1, 1) == found.conformal
