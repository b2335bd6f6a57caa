"""The files of docs/extending.md are whole, and every command knows what they register."""

import json
import random
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from commands import edgewise

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "extending.md").read_text()
FENCED = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
FILES = {
    re.match(r'"""(\w+\.py): ', text)[1]: text for language, text in FENCED if language == "python"
}
COMMANDS = [
    shlex.split(line[2:])
    for language, text in FENCED
    for line in text.splitlines()
    if language == "console"
]
# What each registers, on which data it is used, and the flags that ask for it.
USES = {
    "mean_layer.py": ("folder", ["--layer", "mean", "--target", "risk"]),
    "counts.py": ("folder", ["--task", "counts", "--target", "visits"]),
    "plain.py": ("molecules.csv", ["--featurizer", "plain", "--target", "logp"]),
    "rings.py": ("rings", []),
}
QUICK = ["--epochs", "4", "--hidden", "4"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The files of the document, and data that its commands name."""
    folder = tmp_path_factory.mktemp("extending")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    draw = random.Random(0)
    risks = [("low", "high")[i % 2] for i in range(40)]
    nodes = [f"f{i},{draw.gauss(i % 2, 1):.2f},{i % 5},{risks[i]}" for i in range(40)]
    edges = sorted({(i, (i + 2 * draw.randint(1, 9)) % 40) for i in range(40) for _ in range(3)})
    for graph in (folder, folder / "folder", folder / "next-month"):
        graph.mkdir(exist_ok=True)
        (graph / "nodes.csv").write_text("\n".join(["id,size,visits,risk", *nodes, ""]))
        lines = [f"f{a},f{b},{draw.random():.2f}" for a, b in edges]
        (graph / "edges.csv").write_text("\n".join(["source,target,amount", *lines, ""]))
    chains = ["C" * length + end for length in range(1, 11) for end in ("O", "N", "Cl", "F")]
    lines = [f"{chain},{len(chain) / 3:.2f}" for chain in chains]
    for name in ("molecules.csv", "library.csv"):
        (folder / name).write_text("\n".join(["smiles,logp", *lines, ""]))
    return folder


@pytest.fixture(scope="module")
def outcome(place):
    """What each file's five commands printed: check, train, predict, evaluate, tune."""

    def run(name):
        data, flags = USES[name]
        plugin, out = ["--plugin", name], f"run-{Path(name).stem}"
        commands = [
            ["check", data, *flags, *plugin],
            ["train", data, *flags, *plugin, *QUICK, "--out", out],
            ["predict", out, data, *plugin],
            ["evaluate", out, *plugin, "--json"],
            ["tune", data, *flags, *plugin, "--epochs", "2", "--trials", "1", "--out", f"{out}-t"],
        ]
        done = [edgewise(*words, cwd=place) for words in commands]
        assert not any(one.returncode for one in done), [one.stderr for one in done]
        return place / out, [one.stdout for one in done]

    return cache(run)


def test_every_file_is_short_and_used_by_a_command():
    assert set(FILES) == set(USES)
    for name, text in FILES.items():
        assert len(text.splitlines()) < 40, name
        assert any(name in words for words in COMMANDS), name


@pytest.mark.parametrize("name", USES)
def test_every_command_that_reads_data_takes_the_plugin(name, outcome):
    folder, (checked, trained, predicted, evaluated, tuned) = outcome(name)
    assert "train=" in checked
    assert str(folder.name) in trained
    assert len(predicted.splitlines()) == (61 if name == "rings.py" else 41)
    assert set(json.loads(evaluated)) == {"train", "validation", "test"}
    assert "1 trials (1 complete)" in tuned


def test_a_task_decides_columns_and_metrics(outcome):
    _, (checked, _, predicted, evaluated, _) = outcome("counts.py")
    assert "counts of [visits]" in checked
    header, first, *_ = predicted.splitlines()
    assert header == "id,visits_true,visits_predicted"
    assert float(first.split(",")[2]) > 0
    assert set(json.loads(evaluated)["test"]) == {"rows", "mae", "per_target"}


def test_a_featuriser_decides_the_widths(outcome):
    _, (checked, *_) = outcome("plain.py")
    assert "channels=4, features=6" in checked


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_run_is_refused_without_its_plugin_and_told_to_name_it(name, command, place, outcome):
    folder, _ = outcome(name)
    done = edgewise(command, folder.name, cwd=place)
    assert done.returncode == 2
    assert "--plugin" in done.stderr
    assert "train it again" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import nothing_of_this_name", "cannot be imported (ModuleNotFoundError"),
        ("def broken(:", "cannot be imported (SyntaxError"),
        ("1 / 0", "cannot be imported (ZeroDivisionError: division by zero); correct it"),
        (
            "import edgewise\nedgewise.register_layer('conv')(object)",
            "there is a layer named 'conv' already; choose another name",
        ),
    ],
)
def test_a_plugin_that_fails_is_a_sentence(text, sentence, tmp_path):
    (tmp_path / "mine.py").write_text(text)
    done = edgewise("check", "cora", "--plugin", "mine.py", cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_plugin_that_is_not_there_is_a_sentence(tmp_path):
    done = edgewise("check", "cora", "--plugin", "mine.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "the plugin mine.py failed: there is no such file" in done.stderr


@pytest.mark.slow
def test_the_commands_run_as_printed(place):
    for program, *words in COMMANDS:
        assert program == "edgewise"
        done = edgewise(*words, *(QUICK if words[0] == "train" else ()), cwd=place)
        assert done.returncode == 0, (words, done.stderr)
    assert "two rings of 30 nodes, 2 classes" in done.stdout
    assert len((place / "risks.csv").read_text().splitlines()) == 41
    assert len((place / "logp.csv").read_text().splitlines()) == 41
