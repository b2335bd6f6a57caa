"""What tests of searches share: a small graph, few epochs, and what a search decided."""

import itertools

import numpy as np

from edgewise.core.config import read_config
from edgewise.core.presets import make_settings
from edgewise.data.sources import find_source
from edgewise.training import fit_member
from edgewise.tuning import tune
from edgewise.units.base import resolve
from edgewise.units.node import NODE

EPOCHS = 6
# Few epochs, in which the preset's learning rate does not get far; convolution, for speed.
FIXED = {"layer": "conv", "epochs": EPOCHS, "patience": EPOCHS, "split_column": "part"}


def write_tables(folder, seed=0, flip_test=False):
    """Sixty nodes whose class is that of the nodes they point to, seen through noise."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seed)
    label = draw.integers(2, size=60)
    parts = ["train", "validation", "test"]
    rows = ["id,a,b,label,part"]
    for i, kind in enumerate(label):
        part = parts[i % 3]
        shown = 1 - kind if flip_test and part == "test" else kind
        a, b = draw.normal(0.7 * kind, 1), draw.normal(size=1)[0]
        rows.append(f"{i},{a:.3f},{b:.3f},{'no' if shown else 'yes'},{part}")
    (folder / "nodes.csv").write_text("\n".join(rows) + "\n")
    pairs = {(int(i), int(j)) for i, j in draw.integers(60, size=(400, 2)) if i != j}
    kept = [f"{i},{j}" for i, j in sorted(pairs) if label[i] == label[j] or draw.random() < 0.2]
    (folder / "edges.csv").write_text("\n".join(["source,target", *kept]) + "\n")
    return find_source([str(folder / "nodes.csv"), str(folder / "edges.csv")])


def settings_in(path, unit="node"):
    """The settings of a config file."""
    return make_settings(unit, **read_config(path))


def search(source, folder, trials=6, **others):
    fixed = FIXED | others.pop("settings", {})
    base = make_settings("node", **fixed)
    return tune(source, NODE, base, fixed, folder, trials=trials, **others)


def made(tuned):
    """All that a search decided, without how long it took and how often it was interrupted."""
    return [
        (trial.state, trial.value, trial.settings, trial.epochs, trial.reason)
        for trial in tuned.trials
        if trial.state != "interrupted"
    ]


def after(epochs):
    """A ``stop`` that says yes once, after so many epochs."""
    count = itertools.count(1)
    return lambda: next(count) > epochs


def best_validation_score(source, settings, member=0, lowest=False):
    unit, _ = resolve(source, "default", {})
    history = fit_member(unit.open(source, settings).problem, member).history
    scores = [epoch.validation_score for epoch in history]
    return min(scores) if lowest else max(scores)


def lines_of(folder):
    return (folder / "trials.csv").read_text().splitlines()
