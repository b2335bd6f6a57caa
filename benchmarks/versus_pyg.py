"""How good are tuned networks of PyTorch Geometric and our defaults on the same nodes?

    python benchmarks/versus_pyg.py                                # everything, many hours
    python benchmarks/versus_pyg.py --datasets cora --splits 0 1 --models edgewise GCN
    python benchmarks/versus_pyg.py --table                        # train nothing

Edgewise runs with its defaults: on each split a regime is chosen from four on validation nodes.
Each rival is tuned once on a split that is not reported, by successive halving of some networks by
their best validation score, after 40 and after 240 epochs: on Cora and CiteSeer of eight that are
drawn at random (depth, width, norm, residuals, dropout, learning rate, weight decay), elsewhere of
the four that our portfolio consists of, with the rival's convolution. What won is trained on every
split, with early stopping by the validation score (patience 100, at most 1,000 epochs). Cora,
CiteSeer and PubMed are the directed originals in random 60/20/20 splits (tuned on seed 100);
Squirrel and Minesweeper come with ten splits, of which the last is left out, because our regimes
were set up on it and the rivals are tuned on it; `synthetic` is the graph whose labels depend on
direction and kind of edges. GCN, GAT and GraphSAGE see edges both ways without features; GATv2 and
GINE both ways with features, of which one says the direction; DirGNN sees the directed edges. A run
is one line of benchmarks/results/versus_pyg.jsonl, appended when it is done, so the script can be
stopped and continued. Scores are of the test nodes: accuracy, of Minesweeper ROC AUC, in percent.
`cpu` is processor time on one thread; ours has the choice of a regime in it.
"""

import argparse
import hashlib
import json
import math
import random
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import t as student
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, relu
from torch_geometric.nn import DirGNNConv, GATConv, GATv2Conv, GCNConv, GINEConv, SAGEConv

from edgewise.core.presets import PORTFOLIO, make_settings
from edgewise.core.seeds import seeded
from edgewise.data.citation import load_citation
from edgewise.data.heterophilous import SHAPES, UNDIRECTED, heterophilous_split, load_heterophilous
from edgewise.data.splits import DENSE, Split, random_split
from edgewise.data.synthetic import direction_and_kind_graph
from edgewise.graphs.features import SparseFeatures
from edgewise.graphs.graph import Graph
from edgewise.kernels.activation import drop
from edgewise.kernels.dropout import draw_key
from edgewise.kernels.memory import reuse_freed_memory
from edgewise.tasks.base import Task
from edgewise.tasks.classification import Classification
from edgewise.tasks.multilabel import Multilabel
from edgewise.training import Fitting, fit_member
from edgewise.training.portfolio import RUNGS, WINDOW, decided
from edgewise.units.base import Problem
from edgewise.units.node import node_problem

RESULTS = Path(__file__).parent / "results" / "versus_pyg.jsonl"
CITATIONS = ("cora", "citeseer", "pubmed")
DATASETS = (*CITATIONS, *SHAPES, "synthetic")
AUC = frozenset({"minesweeper"})
TUNED_ON = 9  # split of Squirrel and Minesweeper that our regimes were set up on: not reported
TUNED_ON_SEED = 100  # of the random splits
EPOCHS, PATIENCE = 1000, 100
DRAWN, TRIALS = frozenset({"cora", "citeseer"}), 8
SPACE = {
    "depth": (2, 3, 5, 8, 15),
    "hidden": (64, 128, 256),
    "norm": (False, True),
    "residual": (False, True),
    "dropout": (0.2, 0.5, 0.7),
    "learning_rate": (0.003, 0.005, 0.01),
    "weight_decay": (0.0, 0.0001, 0.0005),
}
# Our regimes. What is 64 wide for each of two or three channels is 128 wide where it is shallow.
_DEEP = {"hidden": 64, "norm": True, "residual": True, "dropout": 0.2, "weight_decay": 0.0001}
REGIMES: list[dict[str, Any]] = [
    {"depth": 2, "hidden": 128, "norm": False, "residual": False, "dropout": 0.6,
     "learning_rate": 0.005, "weight_decay": 0.0005},
    {**_DEEP, "depth": 2, "hidden": 128, "dropout": 0.6, "learning_rate": 0.003},
    {**_DEEP, "depth": 5, "learning_rate": 0.003},
    {**_DEEP, "depth": 15, "learning_rate": 0.01},
]  # fmt: skip


def load(dataset: str, number: int) -> tuple[Graph, Split]:
    """The graph with its labels, and one of its splits."""
    if dataset in SHAPES:
        return load_heterophilous(dataset), heterophilous_split(dataset, number)
    graph = load_citation(dataset)[0] if dataset in CITATIONS else direction_and_kind_graph()[0]
    labelled = (graph.y >= 0).nonzero()[:, 0]
    return graph, random_split(labelled, DENSE, seed=number)


def score(dataset: str, probability: np.ndarray, truth: np.ndarray) -> float:
    """Accuracy or ROC AUC."""
    if dataset in AUC:
        return float(roc_auc_score(truth, probability[:, 1]))
    return float((probability.argmax(axis=1) == truth).mean())


def portfolio_mark() -> str:
    """What tells one portfolio from another."""
    content = json.dumps([PORTFOLIO["node"], RUNGS, WINDOW], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def make_problem(dataset: str, graph: Graph, split: Split, number: int) -> Problem:
    """The data as a default run sees them."""
    assert graph.y is not None
    names = graph.class_names or tuple(map(str, range(int(graph.y.max()) + 1)))
    auc = dataset in AUC
    task = Multilabel(("label",)) if auc else Classification(("label",), names)
    truth = graph.y.float()[:, None] if auc else graph.y
    implied = {"directed": False} if dataset in UNDIRECTED else {}
    settings = make_settings("node", implied=implied, seed=number)
    return node_problem(graph, task, truth, split, settings)[0]


def edgewise(dataset: str, graph: Graph, split: Split, number: int) -> dict[str, Any]:
    """Our defaults."""
    assert graph.y is not None
    problem = decided(make_problem(dataset, graph, split, number))
    probability = probabilities(problem.task, fit_member(problem))
    y = graph.y.numpy()
    parts = {name: rows.numpy() for name, rows in split.parts().items()}
    return {
        "test": score(dataset, probability[parts["test"]], y[parts["test"]]),
        "validation": score(dataset, probability[parts["validation"]], y[parts["validation"]]),
        "chosen": problem.settings.model.regime,
        "portfolio": portfolio_mark(),
    }


def probabilities(task: Task, fitting: Fitting) -> np.ndarray:
    """Of every node, a column for each class."""
    found = task.decode(fitting.trainer.outputs()).detach().numpy()
    return np.concatenate([1 - found, found], axis=1) if found.shape[1] == 1 else found


def _gine(width: int, edge_dim: int) -> nn.Module:
    network = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
    return GINEConv(network, edge_dim=edge_dim)


CONVS: dict[str, Callable[[int, int], nn.Module]] = {
    "GCN": lambda width, edge_dim: GCNConv(width, width),
    "GAT": lambda width, edge_dim: GATConv(width, width // 8, heads=8),
    "GATv2": lambda width, edge_dim: GATv2Conv(width, width // 8, heads=8, edge_dim=edge_dim),
    "GINE": _gine,
    "GraphSAGE": lambda width, edge_dim: SAGEConv(width, width),
    "DirGNN": lambda width, edge_dim: DirGNNConv(SAGEConv(width, width)),
}
WITH_FEATURES = frozenset({"GATv2", "GINE"})
MODELS = ("edgewise", *CONVS)
Courses = Callable[[dict[str, Any]], "Course"]


class Rival(nn.Module):
    """A linear encoder, convolutions with what was drawn, a linear head."""

    def __init__(self, name: str, features: int, classes: int, edge_dim: int, drawn: dict) -> None:
        super().__init__()
        width = drawn["hidden"]
        self.drawn, self.takes_features = drawn, name in WITH_FEATURES
        self.encoder, self.head = nn.Linear(features, width), nn.Linear(width, classes)
        self.convs = nn.ModuleList(CONVS[name](width, edge_dim) for _ in range(drawn["depth"]))
        norms = [nn.BatchNorm1d(width) if drawn["norm"] else nn.Identity() for _ in self.convs]
        self.norms = nn.ModuleList(norms)

    def forward(self, x: SparseFeatures | Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        x = self._dropped(x)
        if isinstance(x, SparseFeatures):  # the same numbers in less time: zeros stay zeros
            h = relu(x @ self.encoder.weight.T + self.encoder.bias)
        else:
            h = relu(self.encoder(x))
        for conv, norm in zip(self.convs, self.norms, strict=True):
            out = conv(h, edge_index, edge_attr) if self.takes_features else conv(h, edge_index)
            out = self._dropped(relu(norm(out)))
            h = h + out if self.drawn["residual"] else out
        return self.head(h)

    def _dropped(self, x: Any) -> Any:
        """Dropout by our kernel, whose random numbers cost less than torch's."""
        if not self.training:
            return x
        p, key = self.drawn["dropout"], draw_key()
        return x.dropped(p, key) if isinstance(x, SparseFeatures) else drop(x, p, key)


class Course:
    """A rival on its way from epoch to epoch, with its best outputs so far."""

    def __init__(self, dataset: str, data: tuple, split: Split, model: Rival) -> None:
        self.dataset, self.data, self.split, self.model = dataset, data, split, model
        drawn = model.drawn
        self.optimizer = torch.optim.Adam(
            model.parameters(), lr=drawn["learning_rate"], weight_decay=drawn["weight_decay"]
        )
        self.epoch, self.best_epoch, self.best, self.probability = 0, 0, -math.inf, None

    @property
    def done(self) -> bool:
        return self.epoch >= EPOCHS or self.epoch - self.best_epoch >= PATIENCE

    def run_to(self, epochs: int) -> float:
        *inputs, y = self.data
        while self.epoch < epochs and not self.done:
            self.epoch += 1
            self.model.train()
            loss = cross_entropy(self.model(*inputs)[self.split.train], y[self.split.train])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.model.eval()
            with torch.no_grad():
                found = self.model(*inputs).softmax(dim=1).numpy()
            rows = self.split.validation.numpy()
            if not np.isfinite(found).all():
                break
            validation = score(self.dataset, found[rows], y.numpy()[rows])
            if validation > self.best:
                self.best, self.best_epoch, self.probability = validation, self.epoch, found
        return self.best


def courses(name: str, dataset: str, graph: Graph, split: Split, number: int) -> Courses:
    """How a rival with given settings begins."""
    assert graph.y is not None
    edge_index, edge_attr = edges_for(name, dataset, graph)
    classes = int(graph.y.max()) + 1

    def begun(drawn: dict[str, Any]) -> Course:
        with seeded(number, 0, 0):
            model = Rival(name, graph.x.shape[1], classes, edge_attr.size(1), drawn)
            return Course(dataset, (graph.x, edge_index, edge_attr, graph.y), split, model)

    return begun


def tune(name: str, dataset: str, graph: Graph, split: Split, number: int) -> dict[str, Any]:
    """The best of some networks of one kind on validation nodes, by successive halving."""
    drawn = REGIMES
    if dataset in DRAWN:
        draw = random.Random(f"{name} {dataset}")
        drawn = [{key: draw.choice(values) for key, values in SPACE.items()} for _ in range(TRIALS)]
    begun = courses(name, dataset, graph, split, number)
    left = [begun(settings) for settings in drawn]
    for epochs in RUNGS:
        for course in left:
            with seeded(number, 0, epochs):
                course.run_to(epochs)
        left = sorted(left, key=lambda course: -course.best)[: math.ceil(len(left) / 2)]
    return {"tuned": left[0].model.drawn, "validation": left[0].best}


def rival(
    name: str, settings: dict[str, Any], dataset: str, graph: Graph, split: Split, number: int
) -> dict[str, Any]:
    """A rival with the settings that won."""
    assert graph.y is not None
    course = courses(name, dataset, graph, split, number)(settings)
    with seeded(number, 0, EPOCHS):
        course.run_to(EPOCHS)
    rows = split.test.numpy()
    assert course.probability is not None
    return {
        "test": score(dataset, course.probability[rows], graph.y.numpy()[rows]),
        "validation": course.best,
        "settings": settings,
    }


def edges_for(name: str, dataset: str, graph: Graph) -> tuple[Tensor, Tensor]:
    """Edges as the rival takes them: directed, or both ways with the direction as a feature.

    In the order of their targets, which takes the convolutions of PyG less time.
    """
    edge_index, edge_attr = _directions(name, dataset, graph)
    order = torch.argsort(edge_index[1], stable=True)
    return edge_index[:, order], edge_attr[order] if len(edge_attr) else edge_attr


def _directions(name: str, dataset: str, graph: Graph) -> tuple[Tensor, Tensor]:
    forward = graph.edge_index
    attr = graph.channels
    if name == "DirGNN" or dataset in UNDIRECTED:  # which lists each edge both ways
        return forward, attr
    ahead, back = attr.new_ones(len(attr), 1), attr.new_zeros(len(attr), 1)
    both = torch.cat([forward, forward.flip(0)], dim=1)
    features = torch.cat([torch.cat([attr, ahead], dim=1), torch.cat([attr, back], dim=1)])
    if name in WITH_FEATURES:
        return both, features
    return torch.unique(both, dim=1), features[:0]


def lines(path: Path = RESULTS) -> list[dict[str, Any]]:
    """What is known so far: ours with today's portfolio, rivals as they were tuned."""
    if not path.exists():
        return []
    found = [json.loads(line) for line in path.read_text().splitlines()]
    tuned = tuned_settings(found)

    def holds(line: dict[str, Any]) -> bool:
        if line["model"] == "edgewise":
            return bool(line["portfolio"] == portfolio_mark())
        settings = tuned.get((line["dataset"], line["model"]))
        return settings is not None and line.get("settings") == settings

    return [line for line in found if holds(line)]


def tuned_settings(found: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """What won for each data set and rival."""
    return {(one["dataset"], one["model"]): one["tuned"] for one in found if "tuned" in one}


def keep(line: dict[str, Any]) -> None:
    """Append a line to the results."""
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as stream:
        stream.write(json.dumps(line) + "\n")


def tuned_on_validation(dataset: str, model: str) -> dict[str, Any]:
    """The settings of a rival, chosen now unless they were chosen before."""
    known = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    if (dataset, model) not in tuned_settings(known):
        number = TUNED_ON if dataset in SHAPES else TUNED_ON_SEED
        start = time.process_time()
        found = tune(model, dataset, *load(dataset, number), number)
        cpu = round(time.process_time() - start, 1)
        known.append({"dataset": dataset, "split": number, "model": model, **found, "cpu": cpu})
        keep(known[-1])
        print(f"{dataset} {model} tuned: {known[-1]}", flush=True)
    return tuned_settings(known)[dataset, model]


def table(found: list[dict[str, Any]]) -> str:
    """Mean and standard deviation over the splits; below, ours less the rival's, paired."""
    scores: dict[tuple[str, str], dict[int, float]] = {}
    for line in found:
        of_model = scores.setdefault((line["dataset"], line["model"]), {})
        of_model[line["split"]] = 100 * line["test"]
    shown = [d for d in DATASETS if any(key[0] == d for key in scores)]
    rows = [f"| | {' | '.join(shown)} |", f"|---|{'---:|' * len(shown)}"]
    for model in MODELS:
        cells = []
        for dataset in shown:
            ours, mine = (scores.get((dataset, m), {}) for m in ("edgewise", model))
            values = list(mine.values())
            text = f"{np.mean(values):.1f} ± {np.std(values):.1f} ({len(values)})" if values else ""
            pairs = np.array([ours[s] - mine[s] for s in mine if s in ours])
            if model != "edgewise" and len(pairs) > 1:
                error = pairs.std(ddof=1) / math.sqrt(len(pairs))
                half = float(student.ppf(0.975, len(pairs) - 1)) * error
                text += f"; {pairs.mean():+.1f} ± {half:.1f}"
            cells.append(text)
        rows.append(f"| {model} | {' | '.join(cells)} |")
    rows.append("")
    rows.append("In brackets the number of splits; behind it ours less the rival's, 95 % interval.")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--splits", nargs="+", type=int, default=range(10))
    parser.add_argument("--table", action="store_true", help="train nothing")
    given = parser.parse_args()
    torch.set_num_threads(1)
    reuse_freed_memory()  # for the rivals, too
    known = {(line["dataset"], line["split"], line["model"]) for line in lines()}
    for number, dataset in [] if given.table else product(given.splits, given.datasets):
        missing = [m for m in given.models if (dataset, number, m) not in known]
        if not missing or (dataset in SHAPES and number == TUNED_ON):
            continue
        graph, split = load(dataset, number)
        for model in missing:
            run = (
                edgewise
                if model == "edgewise"
                else partial(rival, model, tuned_on_validation(dataset, model))
            )
            start = time.process_time()
            line = {"dataset": dataset, "split": number, "model": model}
            line |= run(dataset, graph, split, number)
            line["cpu"] = round(time.process_time() - start, 1)
            keep(line)
            print(f"{dataset} {number} {model}: {100 * line['test']:.1f}", flush=True)
    print(table(lines()))


if __name__ == "__main__":
    main()
