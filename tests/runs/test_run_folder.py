"""A run folder is reserved, held by one process, and left alone if it holds something else."""

import pytest
from run_toys import SETTINGS

from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.core.files import alone_in
from edgewise.core.presets import make_settings
from edgewise.data.sources import find_source
from edgewise.runs import open_run
from edgewise.runs.folder import check_data, start_run
from edgewise.runs.train import reserve_folder
from edgewise.training import load_model


@pytest.mark.slow
@pytest.mark.parametrize("made", [True, False])
def test_what_makes_no_model_leaves_no_folder(graph_folder, tmp_path, made, monkeypatch):
    if made:
        (tmp_path / "run").mkdir()

    def no_model(*_):
        raise EdgewiseError("no model can be made")

    monkeypatch.setattr("edgewise.runs.checkpoint.make_trainer", no_model)
    with pytest.raises(EdgewiseError, match="no model"):
        runs.train(str(graph_folder), tmp_path / "run", **SETTINGS)
    assert (tmp_path / "run").exists() == made  # a folder that the user made stays
    assert not made or not list((tmp_path / "run").iterdir())


def test_settings_that_make_no_model_leave_no_folder(graph_folder, tmp_path):
    with pytest.raises(EdgewiseError, match="set heads = 1 or adapt = false"):
        runs.train(str(graph_folder), tmp_path / "run", layer="attention", heads=2)
    assert not (tmp_path / "run").exists()


def test_bad_data_leave_no_folder_behind(graph_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EdgewiseError, match="has no column 'gone'"):
        runs.train(str(graph_folder), target="gone")
    assert [path.name for path in tmp_path.iterdir()] == ["firms"]


def test_folders_are_reserved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [reserve_folder("firms").name for _ in range(3)] == ["firms", "firms-2", "firms-3"]


def test_a_folder_that_holds_something_is_left_alone(graph_folder, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("mine")
    with pytest.raises(EdgewiseError, match="exists already and is not empty"):
        runs.train(str(graph_folder), tmp_path / "run", **SETTINGS)
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["thesis.txt"]


def test_a_run_is_trained_by_one_process_at_a_time(graph_folder, tmp_path):
    run = start_run(
        tmp_path / "run", find_source([str(graph_folder)]), make_settings("node"), "default", ""
    )
    with (
        alone_in(run.folder, "training"),
        pytest.raises(EdgewiseError, match="another training is at work in"),
    ):
        runs.resume(run.folder)
    assert sorted(path.name for path in run.folder.iterdir()) == ["recipe.json"]


def test_changed_data_are_not_taken_for_the_old_ones(graph_folder, tmp_path):
    run = start_run(
        tmp_path / "run", find_source([str(graph_folder)]), make_settings("node"), "default", ""
    )
    check_data(run)
    with (graph_folder / "edges.csv").open("a") as stream:
        stream.write("n0,n39,1\n")
    with pytest.raises(EdgewiseError, match="has changed since"):
        runs.resume(run.folder)


@pytest.mark.slow
def test_data_that_are_gone_are_a_sentence(graph_folder, molecule_file, tmp_path):
    for name, data in (("nodes", graph_folder), ("molecules", molecule_file)):
        run = runs.train(str(data), tmp_path / name, **SETTINGS)
        data.rename(data.with_name("moved"))
        with pytest.raises(EdgewiseError, match="put the data back"):
            runs.evaluate(run.folder)
        with pytest.raises(EdgewiseError, match="is not there any more"):
            runs.predict(run.folder, (), tmp_path / "out.csv")
        assert not (tmp_path / "out.csv").exists()
        data.with_name("moved").rename(data)


@pytest.mark.slow
@pytest.mark.parametrize("content", ["{", "{}", "[]", "null"])
def test_damaged_metrics_are_a_sentence_whose_cure_works(graph_folder, tmp_path, content):
    run = runs.train(str(graph_folder), tmp_path / "run", **SETTINGS)
    metrics = run.metrics
    (run.folder / "metrics.json").write_text(content)
    with pytest.raises(EdgewiseError, match=r"is damaged .* delete it and run"):
        runs.resume(run.folder)
    (run.folder / "metrics.json").unlink()
    assert runs.resume(run.folder).metrics["test"] == metrics["test"]


def test_a_folder_without_a_run_is_a_sentence(tmp_path):
    with pytest.raises(EdgewiseError, match=r"no recipe\.json"):
        open_run(tmp_path)
    with pytest.raises(EdgewiseError, match="holds no model; give the folder of a run"):
        load_model(tmp_path)
    (tmp_path / "recipe.json").write_text("{}")
    with pytest.raises(EdgewiseError, match="cannot be used"):
        open_run(tmp_path)
