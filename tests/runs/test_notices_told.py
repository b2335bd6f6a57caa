"""Notices on the data are told, kept in the run, and shown in its report."""

import json
import random
import sys

import pytest
import torch
from run_toys import SETTINGS

from edgewise import runs
from edgewise.cli.app import main
from edgewise.core.presets import make_settings
from edgewise.data.graph_files import save_graph
from edgewise.data.sources import find_source
from edgewise.graphs.graph import Graph
from edgewise.units.graph import GRAPH
from edgewise.units.node import NODE


def write_graph(folder, *, edges=True):
    """Forty nodes: ``code`` names the classes, a nameless column the rows, ``tag`` a source."""
    folder.mkdir()
    draw = random.Random(0)
    label = [draw.choice("abc") for _ in range(40)]
    nodes = [
        f"{i},n{i},{draw.random():.3f},{draw.random():.3f},{label[i] * 2},{draw.choice('xy')},"
        f"{draw.choice(['one two three four', 'five six seven eight'])},{label[i]}\n"
        for i in range(40)
    ]
    (folder / "nodes.csv").write_text(
        ",id,size,age,code,sector,about,label\n" + "".join(nodes), encoding="utf-8"
    )
    rows = [f"n{i},n{(i + 3) % 40},{draw.gauss(0, 1):.3f},{label[i]}\n" for i in range(40)]
    (folder / "edges.csv").write_text("source,target,amount,tag\n" + "".join(rows * edges))
    return folder


def opened(unit, place, **settings):
    source = find_source([str(place)])
    preset = make_settings(unit.name, "default", implied=source.implied, **settings)
    return unit.open(source, preset)


def test_columns_that_give_the_target_away_and_row_numbers_are_told(tmp_path):
    code, tag, index = opened(NODE, write_graph(tmp_path / "g"), target=("label",)).notices
    assert code.startswith("column 'code' is a one-to-one image of the target 'label' wherever")
    assert tag.startswith(
        "edge column 'tag' is a one-to-one image of the target 'label' at the source of each edge"
    )
    assert index.startswith("column '' of the nodes looks like row numbers")


def test_columns_that_are_left_out_are_not_told(tmp_path):
    place = write_graph(tmp_path / "g")
    assert opened(NODE, place, target=("label",), ignore=("code", "tag", "")).notices == ()
    numbers = opened(NODE, place, target=("size",), ignore=("",)).notices
    assert numbers == ()


def test_a_table_of_edges_without_rows_is_told(tmp_path):
    place = write_graph(tmp_path / "g", edges=False)
    (told,) = opened(NODE, place, target=("label",), ignore=("code", "")).notices
    assert told.endswith(
        "edges.csv has no edges, so each node is predicted from its own features alone"
    )


def test_a_ready_graph_is_looked_at_as_well(tmp_path):
    y = torch.arange(60) % 3
    x = torch.stack([torch.rand(60), 5.0 - y], dim=1)
    edge_index = torch.stack([torch.arange(60), (torch.arange(60) + 7) % 60])
    save_graph(Graph(x, edge_index, y=y), tmp_path / "leak.safetensors")
    (told,) = opened(NODE, tmp_path / "leak.safetensors").notices
    assert told.startswith("feature '1' is a one-to-one image of the target 'y'")


def test_molecules_that_stand_twice_are_told(tmp_path):
    rows = [f"{'C' * (i % 20 + 1)}O,{i}.5" for i in range(40)]
    (tmp_path / "m.csv").write_text("smiles,logp\n" + "\n".join(rows) + "\n")
    across, values = opened(GRAPH, tmp_path / "m.csv", target=("logp",)).notices
    assert "in more than one part of the split" in across
    assert values.startswith("20 molecules [CO, CCO, CCCO, ... 20 in all] stand more than once")
    kept = opened(GRAPH, tmp_path / "m.csv", target=("logp",), split="scaffold").notices
    assert "in more than one part" not in "".join(kept)


@pytest.mark.slow
@pytest.mark.report
def test_notices_are_told_kept_and_reported(tmp_path):
    told = []
    place = str(write_graph(tmp_path / "<b>"))
    run = runs.train(place, tmp_path / "run", target="label", tell=told.append, **SETTINGS)
    assert [line for line in told if line.startswith("notice: column 'code'")]
    assert runs.open_run(run.folder).notices == run.notices
    assert json.loads((run.folder / "recipe.json").read_text())["notices"] == list(run.notices)
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert "column &#39;code&#39; is a one-to-one image of the target" in page


def test_a_run_of_today_without_notices_and_one_from_before_have_none(tmp_path, node_run):
    assert runs.open_run(node_run.folder).notices == node_run.notices
    recipe = json.loads((node_run.folder / "recipe.json").read_text())
    recipe.pop("notices")
    (tmp_path / "recipe.json").write_text(json.dumps(recipe))
    assert runs.open_run(tmp_path).notices == ()


def test_check_tells_notices_too(tmp_path, monkeypatch, capsys):
    place = write_graph(tmp_path / "g")
    monkeypatch.setattr(sys, "argv", ["edgewise", "check", str(place), "--target", "label"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert "notice: column 'code' is" in capsys.readouterr().out


def test_training_says_what_the_columns_became(tmp_path):
    place = write_graph(tmp_path / "g")
    problem = opened(NODE, place, target=("label",), ignore=("code", "")).problem
    assert NODE.summarised_columns(problem) == (
        "columns: size, age numbers; sector categories (2); about text (8 words); "
        "edges: amount +/-, tag c..."
    )
    short = opened(NODE, place, target=("label",), ignore=("code", "", "about", "sector")).problem
    assert NODE.summarised_columns(short) == (
        "columns: size, age numbers; edges: amount +/-, tag categories (3)"
    )


def test_training_tells_its_columns_in_one_line(graph_folder, tmp_path):
    told = []
    runs.train(str(graph_folder), tmp_path / "run", tell=told.append, **SETTINGS)
    assert "columns: size numbers; edges: amount" in told


@pytest.mark.parametrize("kind", [torch.float64, torch.float16, torch.bfloat16])
def test_graphs_of_any_precision_are_read_as_float32(tmp_path, kind):
    y = torch.arange(30) % 2
    edge_index = torch.stack([torch.arange(30), (torch.arange(30) + 2) % 30])
    graph = Graph(torch.rand(30, 3).to(kind), edge_index, torch.rand(30, 2).to(kind), y=y)
    save_graph(graph, tmp_path / "g.safetensors")
    told = []
    run = runs.train(
        str(tmp_path / "g.safetensors"), tmp_path / "run", tell=told.append, **SETTINGS
    )
    assert f"the graph's numbers ({str(kind)[6:]}) are read as float32" in told
    assert runs.predict(run.folder, [str(tmp_path / "g.safetensors")], tmp_path / "o.csv") == (
        30,
        0,
    )
