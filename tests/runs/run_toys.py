"""What tests of runs share: small settings, and ways to look at what a run left."""

import csv
import json
from importlib import import_module
from pathlib import Path

SETTINGS = {"hidden": 4, "epochs": 12, "patience": 12}
SMILES = (
    *("CCO", "CCN", "CCCl", "c1ccccc1", "CC(=O)O", "CCCC", "C1CCCCC1", "c1ccncc1", "CC#N", "CBr"),
)
# The package has a function of the same name.
TRAIN_MODULE = import_module("edgewise.runs.train")


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
