"""Are whole graphs learnt as well as with PyTorch Geometric?

    python benchmarks/versus_graphs.py tune        # choose the settings of both sides
    python benchmarks/versus_graphs.py folds       # ten folds with them
    python benchmarks/versus_graphs.py show

Mutagenicity and PROTEINS. Ours is the gated network of the preset, 64 wide with 32 channels; the
rival is GINE (GIN where edges have no columns) as PyG builds it, of the same depth, width, batch
size, epochs and schedule, with the same numbers as input. Test fold k, validation fold k + 1,
training the rest; both keep the epoch of the lowest validation loss. The same settings are tried
for both, and those of the lowest validation loss kept, in a fold of other folds (another seed),
whose test rows are not looked at.
A run is one line of benchmarks/results/versus_graphs.jsonl, appended when it is done, so the
script can be stopped and continued. One thread.
"""

import argparse
import json
import statistics
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import (
    GINConv,
    GINEConv,
    global_add_pool,
    global_max_pool,
    global_mean_pool,
)

from edgewise.data.sources import find_source
from edgewise.data.splits import Split
from edgewise.kernels.backend import set_num_threads
from edgewise.tasks.reading import find_task
from edgewise.training import fit_member, make_predictor
from edgewise.training.trainer import SCHEDULES
from edgewise.units.base import Problem, resolve
from edgewise.units.graph import graph_problem

RESULTS = Path(__file__).parent / "results" / "versus_graphs.jsonl"
DATASETS = {"proteins": 30, "mutagenicity": 20}  # and epochs
WIDTH, DEPTH, BATCH, FOLDS = 64, 4, 64, 10
CHANNELS = 32  # of the gated layers
REPORTED, TUNED = 0, 1  # seeds of the folds
TRIED: list[dict[str, Any]] = [  # by both sides
    {"learning_rate": rate, "dropout": dropout} for dropout in (0.0, 0.2) for rate in (0.001, 0.003)
]


def problem_of(name: str, seed: int, fold: int, **changes: Any) -> Problem:
    """The data with the rows of a fold, as both sides see them."""
    source = find_source([name])
    given = {"hidden": WIDTH, "depth": DEPTH, "batch_size": BATCH, "epochs": DATASETS[name]}
    given |= {"patience": DATASETS[name], "seed": fold, "device": "cpu"}
    given |= {**({} if "layer" in changes else {"channels": CHANNELS}), **changes}
    _, settings = resolve(source, "default", given)
    rows = source.read_graphs(settings.data)
    task, truth = find_task(rows.table, rows.targets, settings.data.task)
    structures, _ = rows.structures()
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    tests = [torch.from_numpy(test) for _, test in folds.split(truth, truth)]
    chosen = {fold, (fold + 1) % FOLDS}
    train = torch.cat([rows for number, rows in enumerate(tests) if number not in chosen])
    split = Split(train.sort().values, tests[(fold + 1) % FOLDS], tests[fold])
    return graph_problem(structures, task, truth, split, settings)[0]


def ours(problem: Problem) -> dict[str, float]:
    fitting = fit_member(problem, 0)
    assert fitting.best is not None
    predicted = make_predictor(problem, (fitting.trainer.model,)).predict(problem.data).mean
    return {
        "validation_loss": fitting.best.validation_loss,
        **{f"{part}_accuracy": accuracy(problem, predicted, part) for part in PARTS},
    }


PARTS = ("validation", "test")


def accuracy(problem: Problem, predicted: np.ndarray, part: str) -> float:
    rows = problem.split.parts()[part]
    return float((predicted[rows].argmax(1) == problem.truth[rows].numpy()).mean())


class PygNetwork(nn.Module):
    """GIN(E) with batch normalisation, residuals, and the same pooling and head as ours."""

    def __init__(self, problem: Problem, dropout: float, width: int = WIDTH) -> None:
        super().__init__()
        channels = problem.data.num_channels
        kind = "gine" if channels > 1 else "gin"
        self.with_edges, self.dropout = kind != "gin", nn.Dropout(dropout)
        self.encoder = nn.Linear(problem.data.num_features, width)
        self.convs = nn.ModuleList(_conv(kind, channels, width) for _ in range(DEPTH))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(DEPTH))
        self.head = nn.Sequential(
            nn.Linear(3 * width, 3 * width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(3 * width, problem.task.width),
        )

    def forward(self, data: Any) -> Tensor:
        h = self.encoder(data.x)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            edges = (data.edge_index, data.edge_attr) if self.with_edges else (data.edge_index,)
            h = h + self.dropout(norm(conv(h, *edges)).relu())
        pools = (global_mean_pool, global_max_pool, global_add_pool)
        return self.head(torch.cat([pool(h, data.batch) for pool in pools], dim=1))


def _conv(kind: str, channels: int, width: int) -> nn.Module:
    inner = nn.Sequential(
        nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width)
    )
    conv = GINEConv if kind == "gine" else GINConv
    return conv(inner, train_eps=True, **({"edge_dim": channels} if kind == "gine" else {}))


def as_pyg(problem: Problem) -> list[Data]:
    graphs = (problem.data.batch([i]) for i in range(len(problem.data)))  # type: ignore[attr-defined]
    return [
        Data(x=g.x, edge_index=g.edge_index, edge_attr=g.edge_attr, y=y)
        for g, y in zip(graphs, problem.truth, strict=True)
    ]


def rival(problem: Problem) -> dict[str, float]:
    training = problem.settings.training
    torch.manual_seed(training.seed)
    graphs, parts = as_pyg(problem), problem.split.parts()
    model = PygNetwork(problem, problem.settings.model.dropout)
    optimizer = torch.optim.AdamW(
        model.parameters(), training.learning_rate, weight_decay=training.weight_decay
    )
    loader = DataLoader([graphs[i] for i in parts["train"]], BATCH, shuffle=True)
    steps = training.epochs * len(loader)
    rate = partial(SCHEDULES[training.schedule], steps=steps, warmup=training.warmup)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    best: dict[str, float] = {"validation_loss": float("inf")}
    for _ in range(training.epochs):
        model.train()
        for batch in loader:
            step(model, optimizer, batch, training.clip)
            schedule.step()
        found = evaluated(model, graphs, parts)
        best = found if found["validation_loss"] < best["validation_loss"] else best
    return best


def step(model: nn.Module, optimizer: Any, batch: Any, clip: float) -> None:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(batch), batch.y).backward()
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()


@torch.no_grad()
def evaluated(model: nn.Module, graphs: list[Data], parts: dict[str, Tensor]) -> dict[str, float]:
    model.eval()
    found = {}
    for part in PARTS:
        batches = list(DataLoader([graphs[i] for i in parts[part]], 256))
        outputs = torch.cat([model(batch) for batch in batches])
        truth = torch.cat([batch.y for batch in batches])
        found[f"{part}_accuracy"] = float((outputs.argmax(1) == truth).float().mean())
        if part == "validation":
            found["validation_loss"] = float(nn.functional.cross_entropy(outputs, truth))
    return found


SIDES = {"edgewise": ours, "pyg": rival}


def lines() -> list[dict[str, Any]]:
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text().splitlines() if line]


def run(name: str, side: str, seed: int, fold: int, settings: dict[str, Any]) -> None:
    key = {"dataset": name, "side": side, "seed": seed, "fold": fold, "settings": settings}
    if any(all(line.get(k) == v for k, v in key.items()) for line in lines()):
        return
    start = time.process_time()
    problem = problem_of(name, seed, fold, **settings)
    found = SIDES[side](problem)
    keep({**key, **{k: round(v, 5) for k, v in found.items()},
          "cpu": round(time.process_time() - start, 1)})  # fmt: skip


def keep(line: dict[str, Any]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)


def tune(names: list[str]) -> None:
    for name in names:
        for side in SIDES:
            for settings in TRIED:
                run(name, side, TUNED, 0, settings)


def best_settings(name: str, side: str) -> dict[str, Any]:
    tried = [
        line for line in lines()
        if line.get("seed") == TUNED and (line["dataset"], line["side"]) == (name, side)
    ]  # fmt: skip
    if not tried:
        sys.exit(f"there are no settings for {name} and {side} yet; run tune first")
    return min(tried, key=lambda line: line["validation_loss"])["settings"]


def folds(names: list[str]) -> None:
    for fold in range(FOLDS):  # fold by fold, so that what is there can be compared
        for name in names:
            for side in SIDES:
                run(name, side, REPORTED, fold, best_settings(name, side))


def show(names: list[str]) -> None:
    print("| data set | side | folds | test accuracy | standard deviation | CPU s of a fold |")
    print("|---|---|---:|---:|---:|---:|")
    for name in names:
        for side in SIDES:
            found = [
                line for line in lines()
                if line.get("seed") == REPORTED and (line["dataset"], line["side"]) == (name, side)
            ]  # fmt: skip
            if len(found) > 1:
                score = [100 * line["test_accuracy"] for line in found]
                cpu = statistics.fmean(line["cpu"] for line in found)
                print(
                    f"| {name} | {side} | {len(found)} | {statistics.fmean(score):.1f} % | "
                    f"{statistics.stdev(score):.1f} | {cpu:.0f} |"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["tune", "folds", "show"])
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=list(DATASETS))
    wanted = parser.parse_args()
    set_num_threads(1)
    {"tune": tune, "folds": folds, "show": show}[wanted.what](wanted.datasets)


if __name__ == "__main__":
    main()
