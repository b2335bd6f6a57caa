"""What to run for each cell of the paper's tables, one training at a time."""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.presets import OF_MOLECULES, make_settings
from edgewise.core.settings import Settings
from edgewise.data.chemistry import MoleculeCodes
from edgewise.data.citation import load_citation
from edgewise.data.molecule_tables import read_named, read_structures
from edgewise.data.splits import random_split
from edgewise.graphs.graph import Graph
from edgewise.nn.network import VARIANTS
from edgewise.paper.baselines.forest import fit_forest
from edgewise.paper.baselines.weave import WEAVE, make_weave_trainer
from edgewise.paper.printed import CITATION, ROWS_2, ROWS_3, SPLITS
from edgewise.tasks.base import Task
from edgewise.tasks.classification import Classification
from edgewise.tasks.reading import find_task
from edgewise.training import Fitting, Trainer, make_trainer
from edgewise.training.legacy import recipe_0_1
from edgewise.units.base import Problem
from edgewise.units.graph import molecule_problem
from edgewise.units.node import node_problem

PROTOCOLS = ("fixed", "random")  # one split and many initial weights, or a split for each run
RUNS = {"cora": 20, "citeseer": 20, "pubmed": 20, "tox21": 5, "lipo": 5, "freesolv": 5}


@dataclass(frozen=True)
class Experiment:
    """One training of one model. Its fields say all that its result depends on."""

    dataset: str
    split: str  # sparse, dense or molecules
    protocol: str
    row: str
    run: int

    def __str__(self) -> str:
        return f"{self.row} on {self.dataset} ({self.split}, {self.protocol}), run {self.run}"

    @property
    def table(self) -> int:
        return 2 if self.dataset in CITATION else 3

    @property
    def settings(self) -> Settings:
        """The paper's settings for this row; runs differ in seeds alone."""
        split_seed = 0 if self.protocol == "fixed" else self.run
        seeds: dict[str, Any] = {"seed": self.run, "split_seed": split_seed, "split": self.split}
        if self.table == 2:
            name, weighted = self.row.removesuffix("*"), self.row.endswith("*")
            variant: dict[str, Any] = {"weighted": weighted, **asdict(VARIANTS[name])}
            return make_settings("node", "paper", **variant, **seeds)
        changes = ROWS[self.row].settings
        return make_settings("graph", "paper", implied=OF_MOLECULES, **changes, **seeds)

    @property
    def marks(self) -> tuple[str, str]:
        """Short marks of the settings, which change when they do: today's, and version 0.1's."""
        settings = self.settings
        return _mark(settings.differences()), _mark(recipe_0_1(settings))


def _mark(settings: dict[str, Any]) -> str:
    content = {name: value for name, value in settings.items() if "seed" not in name}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]


def plan(
    datasets: Sequence[str],
    rows: Sequence[str] = (),
    runs: int | None = None,
    protocols: Sequence[str] = PROTOCOLS,
    splits: Sequence[str] = SPLITS,
) -> list[Experiment]:
    """All experiments asked for, the first run of every row before the second of any."""
    for word, known in (
        *((dataset, tuple(RUNS)) for dataset in datasets),
        *((protocol, PROTOCOLS) for protocol in protocols),
        *((split, SPLITS) for split in splits),
    ):
        if word not in known:
            raise EdgewiseError(f"{word!r} is not in the paper; it uses {', '.join(known)}")
    known_rows = {dataset: ROWS_2 if dataset in CITATION else ROWS_3 for dataset in datasets}
    unknown = [row for row in rows if not any(row in known for known in known_rows.values())]
    if unknown:
        names = dict.fromkeys((*ROWS_2, *ROWS_3))
        raise EdgewiseError(
            f"no table asked for has the row(s) {preview(unknown)}; the rows are {', '.join(names)}"
        )
    experiments = []
    for dataset in dict.fromkeys(datasets):
        chosen = [row for row in known_rows[dataset] if not rows or row in rows]
        kinds = [s for s in SPLITS if s in splits] if dataset in CITATION else ["molecules"]
        ways = [p for p in PROTOCOLS if p in protocols]
        experiments += [
            Experiment(dataset, split, protocol, row, run)
            for run in range(RUNS[dataset] if runs is None else runs)
            for protocol in ways
            for split in kinds
            for row in chosen
        ]
    return experiments


@dataclass(frozen=True, eq=False)
class MoleculeData:
    """A set of molecules as read, before any split."""

    codes: MoleculeCodes
    task: Task
    truth: Tensor


Data = Graph | MoleculeData


def load_data(dataset: str) -> Data:
    """A data set of the paper, read once for all its experiments."""
    if dataset in CITATION:
        return load_citation(dataset)[0]
    rows = read_named(dataset)
    codes, _ = read_structures(rows, on_invalid="skip")
    task, truth = find_task(rows.table, rows.targets)
    return MoleculeData(codes, task, truth[torch.from_numpy(codes.rows)])


def run_experiment(experiment: Experiment, data: Data) -> dict[str, Any]:
    """Train once; gives a line of results."""
    start = time.perf_counter()
    problem = make_problem(experiment.settings, data)
    predicted, epochs = ROWS.get(experiment.row, EGNN).fit(problem)
    return {
        **asdict(experiment),
        "settings": experiment.marks[0],
        **scores(problem, predicted),
        **epochs,
        "seconds": round(time.perf_counter() - start, 2),
    }


Fit = Callable[[Problem], tuple[np.ndarray, dict[str, int]]]  # predictions, and counts of epochs


@dataclass(frozen=True)
class MoleculeRow:
    """A row of Table 3: what it changes in the paper's settings, and how it is fitted."""

    settings: dict[str, Any]
    fit: Fit


def _fit_network(make: Callable[[Problem], Trainer], problem: Problem) -> Any:
    fitting = Fitting(make(problem))
    while not fitting.done:
        fitting.step()
    fitting.restore_best()
    assert fitting.best is not None
    predicted = problem.task.decode(fitting.trainer.outputs()).numpy()
    return predicted, {"epochs": len(fitting.history), "best_epoch": fitting.best.number}


def _fit_forest(problem: Problem) -> Any:
    return fit_forest(problem, problem.settings.training.seed), {}


EGNN = MoleculeRow({}, partial(_fit_network, make_trainer))
ROWS = {
    "RF": MoleculeRow({}, _fit_forest),
    "Weave": MoleculeRow(WEAVE, partial(_fit_network, make_weave_trainer)),
    "EGNN(C)": MoleculeRow({"layer": "conv"}, EGNN.fit),
    "EGNN(A)": MoleculeRow({"layer": "attention"}, EGNN.fit),
}


def make_problem(settings: Settings, data: Data) -> Problem:
    """The problem of these settings: a split of the data, and what they look like to a model."""
    split_seed = settings.split.split_seed
    assert split_seed is not None
    if isinstance(data, Graph):
        assert data.class_names is not None
        assert data.y is not None
        split = random_split(data.num_nodes, settings.split.split, seed=split_seed)
        task = Classification(("class",), data.class_names)
        return node_problem(data, task, data.y, split, settings)[0]
    rows = data.task.labelled_rows(data.truth)
    split = random_split(rows, settings.split.split, seed=split_seed)
    return molecule_problem(data.codes, data.task, data.truth, split, settings)


def scores(problem: Problem, predicted: np.ndarray) -> dict[str, float]:
    """The task's headline metric on the parts that the paper reports."""
    found = {}
    for part in ("validation", "test"):
        rows = problem.split.parts()[part].numpy()
        found[part] = problem.task.score(predicted[rows], problem.truth.numpy()[rows])
    return {part: round(score, 6) for part, score in found.items()}
