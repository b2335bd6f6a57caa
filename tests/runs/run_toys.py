"""What tests of runs share: small settings, and ways to look at what a run left."""

import csv
import json
import random
from importlib import import_module
from pathlib import Path

SETTINGS = {"hidden": 4, "epochs": 12, "patience": 12}
SMILES = (
    *("CCO", "CCN", "CCCl", "c1ccccc1", "CC(=O)O", "CCCC", "C1CCCCC1", "c1ccncc1", "CC#N", "CBr"),
)
EDGES = {"predict": "edges", "target": "amount"}  # of the same folder as nodes
LINKS = {"predict": "links", "time_column": "when", "target": "kind"}  # with the columns it adds
# The package has a function of the same name.
TRAIN_MODULE = import_module("edgewise.runs.train")


def write_graph_tables(folder, count=30):
    """Rings and paths, with a number and a word on each node and a number on each edge."""
    folder.mkdir()
    draw = random.Random(0)
    graphs, nodes, edges = ["graph,shape,size,even"], ["graph,id,mass,kind"], []
    for g in range(count):
        size, ring = draw.randint(3, 7), g % 2
        shape = "" if g == 4 else ("path", "ring")[ring]
        graphs.append(f"g{g},{shape},{size}.5,{'' if g == 5 else 1 - size % 2}")
        nodes += [f"g{g},{i},{draw.gauss(0, 1):.3f},{'ab'[i % 2]}" for i in range(size)]
        edges += [f"g{g},{i},{(i + 1) % size},{draw.random():.3f}" for i in range(size - 1 + ring)]
    (folder / "graphs.csv").write_text("\n".join([*graphs, ""]))
    (folder / "nodes.csv").write_text("\n".join([*nodes, ""]))
    (folder / "edges.csv").write_text("\n".join(["graph,source,target,amount", *edges, ""]))
    return folder


def with_types_and_times(folder, copy):
    """The folder of a graph with a type and a time on each edge."""
    copy.mkdir()
    (copy / "nodes.csv").write_text((folder / "nodes.csv").read_text())
    header, *lines = (folder / "edges.csv").read_text().splitlines()
    lines = [f"{line},{'ab'[i % 2]},{i}" for i, line in enumerate(lines)]
    (copy / "edges.csv").write_text("\n".join([f"{header},kind,when", *lines, ""]))
    return copy


def rows_of(path):
    with Path(path).open(newline="") as stream:
        return list(csv.DictReader(stream))


def files_of(folder):
    """Every file of a run but the report, with the seconds it took left out."""
    found = {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.is_file()}
    metrics = json.loads(found.pop("metrics.json"))
    metrics.pop("seconds")
    found.pop("report.html", None)
    recipe = json.loads(found.pop("recipe.json"))
    recipe.pop("command")
    manifest = json.loads(found.pop("manifest.json", b'{"files": {}}'))["files"]
    for name in ("metrics.json", "recipe.json"):  # they hold the seconds and the command
        manifest.pop(name, None)
    return found | {"metrics": metrics, "recipe": recipe, "manifest": manifest}


def stopping_after(epochs):
    """Arguments of a training that is asked to stop after so many epochs."""
    seen = []
    return {
        "on_epoch": lambda *what: seen.append(what),
        "stop": lambda: len(seen) >= epochs,
    }
