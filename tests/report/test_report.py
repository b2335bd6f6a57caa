"""A report is one file that needs nothing else, hides nothing, and can be built again."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
import torch
import typer
from pages import Page, check_closed, check_colours, check_whole
from small_runs import KINDS, made, make_nodes, page
from torch.testing import assert_close
from typer.testing import CliRunner

from edgewise.cli.report import report
from edgewise.core.errors import EdgewiseError
from edgewise.core.manifest import write_manifest
from edgewise.report.panels.worst_errors import worst_errors
from edgewise.report.run_results import RunResults
from edgewise.report.theme import drawing, thinned
from edgewise.report.wording import joints, listed, metric, number, shortened
from edgewise.runs import open_run
from edgewise.runs.folder import reopen
from edgewise.runs.report import has_report, write_report
from edgewise.tasks.base import Prediction
from edgewise.tasks.records import as_stored


@pytest.mark.parametrize("kind", KINDS)
def test_it_refers_to_nothing_outside(runs, kind):
    check_closed(page(runs[kind]))
    assert "://" not in page(runs[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_whole_html(runs, kind):
    assert check_whole(page(runs[kind])).tags["svg"] > 3


SECTIONS = {
    "nodes": ("Confusion matrix", "Each class", "ROC curve", "Calibration", "Balance"),
    "edges": ("Confusion matrix", "Each class", "edges of its source", "between both"),
    "links": ("Labels", "Hits at k", "Distribution of ranks", "ROC-AUC by time", "between both"),
    "classification": ("Confusion matrix", "Each class", "ROC curve", "Calibration", "Balance"),
    "multilabel": ("Labels", "average precision", "ROC curve", "Calibration", "Balance"),
    "regression": (
        "Predicted against observed",
        "Errors",
        "2 members",
        "3 epochs each",
        "Behind ±, the standard deviation over the members",
    ),
}
EVERYWHERE = (
    "Learning curves", "Map of the embeddings", "Worst errors", "All metrics", "Settings",
    "differ from the preset default", "SHA-256", "versions", "command",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_section_is_there(runs, kind):
    run = runs[kind]
    words = Page(page(run)).words
    for expected in (*SECTIONS[kind], *EVERYWHERE, run.checksum):
        assert expected in words
    headline = run.metrics["headline"]
    for subset in ("test", "validation", "train"):
        assert metric(headline, run.metrics[subset][headline]).replace("\u00a0", " ") in words
    for setting in run.settings.flat():
        assert setting in words


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_report_of_the_folder_is_that_of_the_training_bit_for_bit(runs, kind):
    before = page(runs[kind])  # from memory, right after training
    (runs[kind].folder / "report.html").unlink()
    assert write_report(open_run(runs[kind].folder)) == runs[kind].folder / "report.html"
    assert page(runs[kind]) == before


def test_a_report_that_is_absent_or_older_than_the_results_is_none(runs, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(runs["nodes"].folder, copy)
    run, report_file = open_run(copy), copy / "report.html"
    assert has_report(run)
    results_at = (copy / "metrics.json").stat().st_mtime
    os.utime(report_file, (results_at - 10, results_at - 10))
    assert not has_report(run)
    report_file.unlink()
    assert not has_report(run)


@pytest.mark.slow
def test_reports_can_be_written_in_several_threads_at_once(runs):
    chosen = [runs["nodes"], runs["regression"]]
    before = [page(run) for run in chosen]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write_report, chosen))
    assert [page(run) for run in chosen] == before


def test_the_style_of_drawing_belongs_to_one_thread_at_a_time():
    def style():
        with drawing():
            return matplotlib.rcParams["svg.fonttype"]

    outside = matplotlib.rcParams["svg.fonttype"]
    with ThreadPoolExecutor(1) as pool:
        with drawing():
            waiting = pool.submit(style)
            assert wait([waiting], timeout=0.1).not_done
        assert waiting.result() == "none"
    assert matplotlib.rcParams["svg.fonttype"] == outside != "none"


@pytest.mark.slow
def test_the_command_says_where_the_report_is(runs):
    app = typer.Typer()
    app.command()(report)
    before = page(runs["nodes"])
    done = CliRunner().invoke(app, [str(runs["nodes"].folder)])
    assert (done.exit_code, done.output) == (0, f"wrote {runs['nodes'].folder / 'report.html'}\n")
    assert page(runs["nodes"]) == before


def test_colours_follow_the_mode_of_the_page(runs):
    for kind in KINDS:
        check_colours(page(runs[kind]))


@pytest.mark.slow
def test_an_interrupted_run_says_so(tmp_path):
    epochs = iter(range(100))
    places = make_nodes(tmp_path / "graph")
    run, opened, trained = made(tmp_path / "run", places, epochs=50, stop=lambda: next(epochs) >= 2)
    words = Page(write_report(run, opened, trained).read_text(encoding="utf-8")).words
    assert (
        "This run was interrupted. The results are those of the best weights of 2 epochs" in words
    )
    assert f"edgewise train --resume {run.folder}" in words


def test_a_finished_run_warns_of_nothing(runs):
    assert "interrupted" not in page(runs["nodes"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nodes", "regression"])
def test_without_its_data_the_map_is_left_out_with_a_sentence(runs, kind, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(runs[kind].folder, copy)
    recipe = (copy / "recipe.json").read_text(encoding="utf-8")
    place = runs[kind].source.places[0]
    (copy / "recipe.json").write_text(recipe.replace(place, place + "-gone"), encoding="utf-8")
    write_manifest(copy, ["recipe.json"])
    parsed = Page(write_report(open_run(copy)).read_text(encoding="utf-8"))
    assert "The data are unavailable, so there is no map of the embeddings" in parsed.words
    assert "Map of the embeddings" not in parsed.words
    assert "Worst errors" in parsed.words


@pytest.mark.parametrize("name", ["history.csv", "predictions.csv"])
@pytest.mark.parametrize("content", [None, "", "a,b\nx,y\n", "a\n1\n"])
def test_a_damaged_file_is_named(runs, name, content, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(runs["regression"].folder, copy)
    (copy / name).unlink()
    if content is not None:
        (copy / name).write_text(content, encoding="utf-8")
    run = open_run(copy)
    with pytest.raises(EdgewiseError, match=rf"{name} is not as it was written"):
        write_report(run)
    # Where no checksum tells: a run of version 0.1 has none.
    with pytest.raises(EdgewiseError, match=rf"{name} (cannot be read|does not fit)"):
        RunResults.from_folder(run, run.model().task)


@pytest.mark.slow
def test_data_that_have_changed_are_not_taken_for_the_old_ones(tmp_path):
    run, *_ = made(tmp_path / "run", make_nodes(tmp_path / "graph"))
    with (tmp_path / "graph" / "edges.csv").open("a", encoding="utf-8") as stream:
        stream.write("<i>0</i>,<i>1</i>\n")
    words = Page(write_report(run).read_text(encoding="utf-8")).words
    assert "no map of the embeddings" in words
    assert "has changed" in words


@pytest.mark.slow
def test_parts_without_rows_and_a_single_epoch_are_no_obstacle(tmp_path):
    places = make_nodes(tmp_path / "graph")
    run, opened, trained = made(tmp_path / "run", places, split="1,0,0", epochs=1, depth=1)
    words = Page(write_report(run, opened, trained).read_text(encoding="utf-8")).words
    assert "0 rows" in words
    assert "Loss" in words


def test_results_are_read_back_as_they_were_written(runs):
    run = runs["regression"]
    model = run.model()
    results = RunResults.from_folder(run, model.task)
    problem = reopen(run).problem
    prediction = model.predict(problem.data)
    np.testing.assert_allclose(results.predicted, prediction.mean, rtol=1e-6)
    np.testing.assert_allclose(results.std, prediction.deviation, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(results.truth, problem.truth.numpy(), rtol=1e-6)
    assert results.rows("test").tolist() == sorted(problem.split.test.tolist())
    assert [len(history.epoch) for history in results.history] == run.metrics["epochs"]


def test_numbers_of_an_ensemble_are_in_memory_what_they_are_in_the_file(runs):
    # The mean of several float32 numbers is none itself.
    run = runs["regression"]
    task, draw = run.model().task, np.random.default_rng(0)
    truth = as_stored(draw.normal(size=(2000, 2)))
    mean, std = draw.normal(size=(2, 2000, 2))
    ids, subset = ["C"] * 2000, ["test"] * 2000
    results = RunResults.from_arrays(run, task, (), ids, subset, truth, mean, std)
    written = task.compared_columns(Prediction(mean, std), truth)
    found = (results.truth, results.predicted, results.std)
    for in_memory, in_file in zip(found, task.read_columns(written), strict=True):
        np.testing.assert_array_equal(in_memory, in_file)


def test_embeddings_are_what_the_last_layer_meets(runs):
    run = runs["regression"]
    model, data = run.model(), reopen(run).problem.data
    pooled = torch.from_numpy(model.embeddings(data))
    outputs = model.task.decode(model.members[0].head(pooled)).detach().numpy()
    first = replace(model, members=model.members[:1], stack=None)
    np.testing.assert_allclose(outputs, first.predict(data).mean, rtol=1e-5)
    some = np.array([5, 2])
    np.testing.assert_allclose(model.embeddings(data, some), pooled.numpy()[some], rtol=1e-5)

    run = runs["nodes"]
    model, data = run.model(), reopen(run).problem.data
    hidden = model.embeddings(data)
    assert hidden.shape == (30, 3 * run.settings.model.hidden)
    network, batch = model.members[0], data.batch()
    last = network.blocks[-1]
    edges = batch.edges.encoded(network.direction).prepared(last.layer)
    assert_close(last(torch.from_numpy(hidden), edges)[0], network(batch))


def test_the_worst_errors_come_first(runs):
    run = runs["regression"]
    results = RunResults.from_folder(run, run.model().task)
    rows = results.rows("test")
    error = np.abs(results.predicted - results.truth)[rows] / np.nanstd(results.truth, axis=0)
    worst = worst_errors(results, most=100)
    assert worst[0].row == rows[np.nanmax(error, axis=1).argmax()]
    assert len(worst) == np.isfinite(error).sum()
    run = runs["nodes"]
    results = RunResults.from_folder(run, run.model().task)
    for error in worst_errors(results):
        assert error.observed != error.predicted
        assert results.subset[error.row] == "test"


def test_long_names_are_cut_in_the_middle_and_may_break_at_their_joints():
    assert shortened("one\ntwo\x00 three", 9) == "one t…ree"
    assert joints("a_b/c.d e-f 1.5") == ["a_", "b/", "c.", "d e-", "f 1.", "5"]
    assert "".join(joints("_x__y/")) == "_x__y/"


def test_numbers_are_written_for_people():
    assert [number(v) for v in (0.0, -1.23456, 12.346, 1234.5, 2e7, 1e-5, float("nan"))] == [
        "0.000", "\u22121.235", "12.35", "1,234", "2.00\u00d710\u2077",
        "1.00\u00d710\u207b\u2075", "\u2013",
    ]  # fmt: skip
    assert metric("accuracy", 0.5) == "50.0\u00a0%"
    assert metric("roc_auc", None) == "\u2013"
    assert [listed(n) for n in ([3], [3, 4], [1, 2, 3], range(9))] == [
        "3", "3 and 4", "1, 2 and 3", "0 to 8",
    ]  # fmt: skip


def test_the_rows_that_are_drawn_are_always_the_same():
    rows = np.arange(100, 200)
    assert thinned(rows, 100) is rows
    some = thinned(rows, 30)
    assert len(some) == len(set(some.tolist())) == 30
    assert set(some.tolist()) <= set(rows.tolist())
    np.testing.assert_array_equal(some, thinned(rows, 30))
