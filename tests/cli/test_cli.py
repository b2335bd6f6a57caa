"""The command line is light, and a mistake is one sentence and exit code 2."""

import subprocess
import sys
import time

import pytest
from commands import edgewise as run

pytestmark = pytest.mark.slow


def seconds(*command):
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def test_help_takes_less_than_half_the_time_of_importing_torch():
    help_, torch = [], []
    for _ in range(3):
        help_.append(seconds(sys.executable, "-m", "edgewise", "--help"))
        torch.append(seconds(sys.executable, "-c", "import torch"))
    assert min(help_) < min(torch) / 2


def test_help_names_every_command():
    text = run("--help").stdout
    for command in (
        "train",
        "predict",
        "evaluate",
        "compare",
        "report",
        "tune",
        "reproduce",
        "demo",
    ):
        assert command in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("datasets", "fetch", "coral"), "there is no data set named 'coral'"),
        (("check", "missing-nodes.csv", "missing-edges.csv"), "missing-nodes.csv is not a file"),
        (("train", "missing.csv"), "missing.csv is neither a data set nor a file"),
        (("train", "--resume", "nowhere"), "nowhere is not the folder of a run"),
        (("train", "cora", "--hidden", "-1"), "hidden = -1 is out of range"),
        (("predict", "nowhere", "x.csv"), "nowhere holds no model"),
        (("evaluate", "nowhere"), "nowhere holds no model"),
        (("compare", "nowhere"), "nowhere is not the folder of a run"),
        (("report", "nowhere"), "nowhere is not the folder of a run"),
        (
            *(("check", "cora", "--pooling", "mean", "--smiles-column", "c", "--target", "t"),),
            "the settings [target, smiles_column] do not apply here: cora is a citation network",
        ),
        (("train", "cora", "--pooling", "mean"), "the setting [pooling] does not apply here"),
        (("check", "cora", "--device", "nonsense"), "the device 'nonsense' is unavailable here"),
        (("tune", "missing.csv"), "missing.csv is neither a data set nor a file"),
        (("reproduce", "--dataset", "coral"), "'coral' is not in the paper"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2_and_leaves_nothing(
    arguments, sentence, tmp_path
):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_command_is_exit_code_2():
    assert run("fetsh").returncode == 2


@pytest.mark.slow
def test_the_demo_falls_back_to_a_made_up_graph_where_no_data_can_be_had(tmp_path):
    done = run(
        "demo",
        cwd=tmp_path,
        EDGEWISE_DATA=str(tmp_path / "none"),
        EDGEWISE_CACHE=str(tmp_path / "cache"),
        PIP_NO_INDEX="1",
        PIP_FIND_LINKS=str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    assert "Cora is unavailable" in done.stderr
    assert "synthetic graph" in done.stdout
    assert (tmp_path / "runs" / "demo" / "report.html").exists()
