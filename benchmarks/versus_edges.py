"""Do edges say more to Edgewise than to boosted trees and PyG's layers? Bitcoin OTC.

    python benchmarks/versus_edges.py                              # what is not known yet
    python benchmarks/versus_edges.py --questions sign --models edgewise boosting
    python benchmarks/versus_edges.py --seeds 100 101 --validation # to choose settings
    python benchmarks/versus_edges.py --table                      # train nothing

Questions: `sign`, is a rating negative (ROC AUC), in random splits 70/10/20; `sign-time`, the same
in a split by time (seeds are those of the models); `rating`, its value (RMSE), in random splits.
All models see the ratings of training edges, never an edge's own. `boosting` is scikit-learn's
HistGradientBoosting on counts, means and shares of negative ratings that both ends gave and
received, and, as `boosting+reverse`, on the rating of the reverse edge, too. `gine` and `gat` are
GINEConv and GATConv of PyG with edge_dim, batch norm and residuals on the same messages and node
features as ours, and a perceptron on the pair of end states. Settings of Edgewise were chosen on
validation edges of seed 100, which is not reported; the layers of PyG are trained with the same
ones, without a search of their own. A run is one line of benchmarks/results/versus_edges.jsonl, so
the script can be stopped and continued; a line with other settings is not used. One thread.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GINEConv

from edgewise.data.sources import find_source
from edgewise.graphs.batch import Batch
from edgewise.graphs.channels import parallel_channels
from edgewise.nn.network import Network
from edgewise.training.fitting import Fitting
from edgewise.training.trainer import Trainer, make_trainer
from edgewise.units.base import Problem, resolve

RESULTS = Path(__file__).parent / "results" / "versus_edges.jsonl"
_SHOWN = {"label_messages": True, "split": "0.7,0.1,0.2"}
_RATING = {"target": ("rating",), "task": "regression"}
QUESTIONS: dict[str, dict[str, Any]] = {
    "sign": _SHOWN,
    "sign-time": {**_SHOWN, "time_column": "when"},
    "rating": {**_SHOWN, **_RATING},
}
_FAST = {"schedule": "cosine", "learning_rate": 0.005, "epochs": 40, "patience": 40}
# Those of Edgewise were chosen on validation edges of seed 100.
SETTINGS: dict[str, dict[str, Any]] = {
    "edgewise": _FAST,
    "gine": {**_FAST, "depth": 2, "hidden": 64, "dropout": 0.1},
    "gat": {**_FAST, "depth": 2, "hidden": 64, "dropout": 0.1},
    "boosting": {},
    "boosting+reverse": {},
}
_BY_TIME = {"schedule": "constant", "learning_rate": 0.003, "epochs": 12, "patience": 12}


class PygNetwork(Network):
    """Layers of PyG on the messages of a batch, and a perceptron on the pair of end states."""

    def __init__(
        self, kind: str, features: int, channels: int, depth: int, hidden: int, dropout: float
    ):
        super().__init__()
        self.encoder = nn.Linear(features, hidden)
        self.layers = nn.ModuleList()
        for _ in range(depth):
            inner = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
            self.layers.append(
                GINEConv(inner, edge_dim=3 * channels)
                if kind == "gine"
                else GATConv(hidden, hidden // 4, heads=4, edge_dim=3 * channels)
            )
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(depth))
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Sequential(
            nn.Linear(2 * hidden, 2 * hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(2 * hidden, 1),
        )

    def forward(self, batch: Batch) -> Tensor:
        assert isinstance(batch.x, Tensor)
        assert batch.queries is not None
        edge_index, edge_attr = parallel_channels(batch.edge_index, batch.edge_attr)
        h = self.encoder(batch.x)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            h = h + self.dropout(norm(layer(h, edge_index, edge_attr)).relu())
        source, target = batch.queries.edge_index
        return self.head(torch.cat([h[source], h[target]], dim=1))


def opened(question: str, seed: int, settings: dict[str, Any]) -> Problem:
    source = find_source(["bitcoin-otc"])
    unit, resolved = resolve(source, "default", {**QUESTIONS[question], **settings, "seed": seed})
    return unit.open(source, resolved).problem


def networks(model: str, question: str, seed: int, settings: dict[str, Any]) -> dict[str, float]:
    """Train a network; scores of validation and test."""
    problem = opened(question, seed, settings)
    if model == "edgewise":
        trainer = make_trainer(problem)
    else:
        torch.manual_seed(seed)
        data, s = problem.data, problem.settings.model
        net = PygNetwork(model, data.num_features, data.num_channels, s.depth, s.hidden, s.dropout)
        trainer = Trainer(problem, net)
    fitting = Fitting(trainer)
    while not fitting.done:
        fitting.step()
    fitting.restore_best()
    found = {}
    for name in ("validation", "test"):
        rows = getattr(problem.split, name)
        predicted = problem.task.decode(trainer.outputs(rows)).numpy()
        found[name] = problem.task.score(predicted, problem.truth[rows].numpy())
    return found


def boosting(question: str, seed: int, *, reverse: bool) -> dict[str, float]:
    """Boosted trees on what was counted by hand; an edge's own rating is taken out of it."""
    problem = opened(question, seed, {})
    rated = opened("rating", seed, {}).truth.numpy()[:, 0].astype(float)  # all see ratings
    source, target = problem.data.graph.edge_index.numpy()  # type: ignore[attr-defined]
    shown = np.zeros(len(rated))
    shown[problem.split.train.numpy()] = 1
    columns = []
    for end in (source, target):
        for key in (source, target):
            own = shown * (key == end)
            count = np.bincount(key, weights=shown)
            count.resize(problem.data.graph.num_nodes)  # type: ignore[attr-defined]
            left = count[end] - own
            columns.append(left)
            for value in (rated, (rated < 0).astype(float)):
                total = np.bincount(key, weights=shown * value, minlength=len(count))
                mean = (total[end] - own * value) / np.maximum(left, 1)
                columns.append(np.where(left > 0, mean, np.nan))
    if reverse:
        place = {pair: row for row, pair in enumerate(zip(source, target, strict=True))}
        back = np.array([place.get((b, a), -1) for a, b in zip(source, target, strict=True)])
        columns.append(np.where((back >= 0) & (shown[back] == 1), rated[back], np.nan))
    x, truth = np.stack(columns, axis=1), problem.truth.numpy()
    train = problem.split.train.numpy()
    values = problem.task.lower_is_better
    kind = HistGradientBoostingRegressor if values else HistGradientBoostingClassifier
    trees = kind(random_state=seed).fit(x[train], truth[train, 0])
    found = {}
    for name in ("validation", "test"):
        rows = getattr(problem.split, name).numpy()
        guess = trees.predict(x[rows]) if values else trees.predict_proba(x[rows])[:, 1]
        found[name] = problem.task.score(guess[:, None], truth[rows])
    return found


def settings_of(model: str, question: str) -> dict[str, Any]:
    by_time = "time_column" in QUESTIONS[question] and SETTINGS[model]
    return {**SETTINGS[model], **(_BY_TIME if by_time else {})}


def run(model: str, question: str, seed: int) -> dict[str, Any]:
    settings, start = settings_of(model, question), time.process_time()
    if model.startswith("boosting"):
        scores = boosting(question, seed, reverse=model.endswith("reverse"))
    else:
        scores = networks(model, question, seed, settings)
    line = {"question": question, "model": model, "seed": seed, "settings": settings, **scores}
    return {**line, "cpu_seconds": round(time.process_time() - start, 1)}


def known() -> dict[tuple[str, str, int], dict[str, Any]]:
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    found = [json.loads(line) for line in lines]
    return {
        (one["question"], one["model"], one["seed"]): one
        for one in found
        if one["settings"] == settings_of(one["model"], one["question"])
    }


def show(seeds: list[int], part: str) -> None:
    """A row for each model, a column for each question: mean and standard deviation."""
    results = known()
    print(f"| {part}, seeds {seeds[0]} to {seeds[-1]} | " + " | ".join(QUESTIONS) + " |")
    print("|---|" + "---:|" * len(QUESTIONS))
    for model in SETTINGS:
        cells = []
        for question in QUESTIONS:
            found = [results.get((question, model, seed)) for seed in seeds]
            scores = [one[part] for one in found if one is not None]
            spread = f" ± {np.std(scores, ddof=1):.4f}" if len(scores) > 1 else ""
            few = "" if len(scores) == len(seeds) else f" ({len(scores)} runs)"
            cells.append(f"{np.mean(scores):.4f}{spread}{few}" if scores else "")
        print(f"| {model} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", nargs="+", default=list(QUESTIONS), choices=QUESTIONS)
    parser.add_argument("--models", nargs="+", default=list(SETTINGS), choices=SETTINGS)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--validation", action="store_true", help="show validation scores")
    parser.add_argument("--table", action="store_true", help="train nothing")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    done = known()
    for seed in arguments.seeds:
        for question in arguments.questions:
            for model in arguments.models:
                if arguments.table or (question, model, seed) in done:
                    continue
                line = run(model, question, seed)
                print(json.dumps(line), flush=True)
                with RESULTS.open("a") as stream:
                    stream.write(json.dumps(line) + "\n")
    show(arguments.seeds, "validation" if arguments.validation else "test")


if __name__ == "__main__":
    main()
