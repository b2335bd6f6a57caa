"""Do edges say more to Edgewise than to boosted trees and PyG's layers? Bitcoin OTC.

    python benchmarks/versus_edges.py tune     # choose the settings of every model
    python benchmarks/versus_edges.py seeds    # train with them
    python benchmarks/versus_edges.py show     # the table

Questions: `sign`, is a rating negative (ROC AUC), in random splits 70/10/20; `sign-time`, the same
in a split by time (seeds are those of the models); `rating`, its value (RMSE), in random splits.
Networks see the labels of training edges, never an edge's own: signs, where signs are asked for.
Boosting sees the ratings of training edges in all questions.

`plain gine` and `plain gat` are GINEConv and GATConv of PyG with edge_dim, batch norm and residuals
along the same messages as ours, in both directions, on the degrees of the nodes, and a perceptron
on the pair of end states. `gine` and `gat` are the same with all that our network is told: counts
and means of the edges around a node as its features, and what is known of the pair (its own
columns, counts and means of parallel and of reverse edges) beside the end states; `mlp` is that
perceptron without layers. `gat+paths` also gets what our read-out is told of paths of two edges
between the ends. All networks are 64 wide, those with layers two deep, and train as long.
`boosting` is scikit-learn's HistGradientBoosting on counts, means and shares of negative ratings
that both ends gave and received, and, as `boosting+reverse`, on that of the reverse edge, too.

Several settings are tried for every model and question, on seed 100, which is not reported, and
those of the best validation score are kept: of PyG's networks and `mlp` five (learning rate and
dropout), of ours four (learning rate, and whether edges are told of paths), of boosting four. (A
split by time is the same for all seeds: there they are chosen on its own validation edges.) A run
is one line of benchmarks/results/versus_edges.jsonl, so the script can be stopped and continued; a
line with other settings is not used. One thread.
"""

import argparse
import json
import sys
import time
from itertools import product
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
from edgewise.graphs.edge_rows import query_width
from edgewise.kernels.backend import set_num_threads
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
LOWER_IS_BETTER = {"rating"}
TUNED = 100  # the seed on which settings are chosen
_NETWORKS = [
    *(
        {"learning_rate": rate, "dropout": dropout}
        for rate in (0.002, 0.006)
        for dropout in (0.1, 0.3)
    ),
    {"learning_rate": 0.006, "dropout": 0.0},
]
_TREES = [
    {"learning_rate": rate, "max_leaf_nodes": leaves} for rate in (0.03, 0.1) for leaves in (8, 31)
]
_TOLD_OF_PATHS = [{**settings, "paths": True} for settings in _NETWORKS]
# Ours has the dropout of its preset, and paths or not in its place.
_OURS = [s for s in (*_NETWORKS, *_TOLD_OF_PATHS) if s["dropout"] == 0.1]
TRIED: dict[str, list[dict[str, Any]]] = {
    "edgewise": _OURS,
    "plain gine": _NETWORKS,
    "plain gat": _NETWORKS,
    "gine": _NETWORKS,
    "gat": _NETWORKS,
    "gat+paths": _TOLD_OF_PATHS,
    "mlp": _NETWORKS,
    "boosting": _TREES,
    "boosting+reverse": _TREES,
}
# Of all networks; by time an epoch is about twenty steps, else ten.
_TRAINING = {"schedule": "cosine", "epochs": 40, "patience": 40, "depth": 2, "hidden": 64}
_TRAINING_BY_TIME = {**_TRAINING, "epochs": 20, "patience": 20}


class PygNetwork(Network):
    """Layers of PyG on the messages of a batch, and a perceptron on the pair of end states.

    If ``told``, nodes and pairs come with what our network is told of them.
    """

    def __init__(self, kind: str, problem: Problem, *, told: bool) -> None:
        super().__init__()
        data, settings = problem.data, problem.settings.model
        channels, hidden, dropout = data.num_channels, settings.hidden, settings.dropout
        depth = 0 if kind == "mlp" else settings.depth
        self.encoder = nn.Linear(data.num_features if told else 2, hidden)
        width = query_width(channels, directed=settings.directed, paths=settings.paths)
        self.pair = nn.Linear(width, hidden) if told else None
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
            nn.Linear((2 + told) * hidden, 3 * hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(3 * hidden, 1),
        )

    def forward(self, batch: Batch) -> Tensor:
        assert isinstance(batch.x, Tensor)
        assert batch.queries is not None
        edge_index, edge_attr = parallel_channels(batch.edge_index, batch.edge_attr)
        h = self.encoder(batch.x if self.pair else degrees(batch))
        for layer, norm in zip(self.layers, self.norms, strict=True):
            h = h + self.dropout(norm(layer(h, edge_index, edge_attr)).relu())
        source, target = batch.queries.edge_index
        known = [self.pair(batch.queries.features)] if self.pair else []
        return self.head(torch.cat([h[source], h[target], *known], 1))


def degrees(batch: Batch) -> Tensor:
    """``log(1 + n)`` of the edges that leave a node, and of those that enter it."""
    nodes = len(batch.x)
    counts = [torch.bincount(end, minlength=nodes) for end in batch.edge_index.long()]
    return torch.stack(counts, dim=1).float().log1p()


def opened(question: str, seed: int, settings: dict[str, Any]) -> Problem:
    source = find_source(["bitcoin-otc"])
    unit, resolved = resolve(source, "default", {**QUESTIONS[question], **settings, "seed": seed})
    return unit.open(source, resolved).problem


def networks(model: str, question: str, seed: int, settings: dict[str, Any]) -> dict[str, float]:
    """Train a network; scores of validation and test."""
    training = _TRAINING_BY_TIME if "time_column" in QUESTIONS[question] else _TRAINING
    problem = opened(question, seed, {**training, "paths": False, **settings})
    if model == "edgewise":
        trainer = make_trainer(problem)
    else:
        torch.manual_seed(seed)
        told, kind = not model.startswith("plain"), model.removeprefix("plain ")
        network = PygNetwork(kind.removesuffix("+paths"), problem, told=told)
        trainer = Trainer(problem, network)
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


def boosting(
    question: str, seed: int, settings: dict[str, Any], *, reverse: bool
) -> dict[str, float]:
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
    trees = kind(**settings, random_state=seed).fit(x[train], truth[train, 0])
    found = {}
    for name in ("validation", "test"):
        rows = getattr(problem.split, name).numpy()
        guess = trees.predict(x[rows]) if values else trees.predict_proba(x[rows])[:, 1]
        found[name] = problem.task.score(guess[:, None], truth[rows])
    return found


def run(model: str, question: str, seed: int, settings: dict[str, Any]) -> None:
    """Train and evaluate, unless it is known already, and keep the line."""
    key = {"question": question, "model": model, "seed": seed, "settings": settings}
    if any(all(line[k] == v for k, v in key.items()) for line in lines()):
        return
    start = time.process_time()
    if model.startswith("boosting"):
        scores = boosting(question, seed, settings, reverse=model.endswith("reverse"))
    else:
        scores = networks(model, question, seed, settings)
    line = {**key, **scores, "cpu_seconds": round(time.process_time() - start, 1)}
    print(json.dumps(line), flush=True)
    with RESULTS.open("a") as stream:
        stream.write(json.dumps(line) + "\n")


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()]


def chosen(model: str, question: str) -> dict[str, Any] | None:
    """The settings of the best validation score, once all were tried."""
    found = [
        line for line in lines()
        if (line["model"], line["question"], line["seed"]) == (model, question, TUNED)
        and line["settings"] in TRIED[model]
    ]  # fmt: skip
    if len(found) < len(TRIED[model]):
        return None
    sign = -1 if question in LOWER_IS_BETTER else 1
    return max(found, key=lambda line: sign * line["validation"])["settings"]


def show(seeds: list[int]) -> None:
    """A row for each model, a column for each question: mean and standard deviation."""
    print(f"| test, seeds {seeds[0]} to {seeds[-1]} | " + " | ".join(QUESTIONS) + " |")
    print("|---|" + "---:|" * len(QUESTIONS))
    for model in TRIED:
        cells = []
        for question in QUESTIONS:
            settings = chosen(model, question)
            scores = [
                line["test"] for line in lines()
                if (line["model"], line["question"]) == (model, question)
                and line["seed"] in seeds and line["settings"] == settings
            ]  # fmt: skip
            spread = f" ± {np.std(scores, ddof=1):.4f}" if len(scores) > 1 else ""
            runs = f" ({len(scores)} run{'s' * (len(scores) > 1)})"
            few = "" if len(scores) == len(seeds) else runs
            cells.append(f"{np.mean(scores):.4f}{spread}{few}" if scores else "")
        print(f"| {model} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["tune", "seeds", "show"])
    parser.add_argument("--questions", nargs="+", default=list(QUESTIONS), choices=QUESTIONS)
    parser.add_argument("--models", nargs="+", default=list(TRIED), choices=TRIED)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    wanted = parser.parse_args()
    set_num_threads(1)
    asked = list(product(wanted.questions, wanted.models))
    if wanted.what == "tune":
        for question, model in asked:
            for settings in TRIED[model]:
                run(model, question, TUNED, settings)
    if wanted.what == "seeds":
        for seed, (question, model) in product(wanted.seeds, asked):
            settings = chosen(model, question)
            if settings is None:
                sys.exit(f"the settings of {model} for {question} are not chosen yet; run tune")
            run(model, question, seed, settings)
    show(wanted.seeds)


if __name__ == "__main__":
    main()
