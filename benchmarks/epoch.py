"""How long does one epoch take, against the same job in PyTorch Geometric?

    python benchmarks/epoch.py [--epochs 20] [--datasets cora pubmed]

One epoch is a training step on the whole graph and a forward pass for validation, on the dense
split. Ours: EGNN(C) and EGNN(A), three channels, 64 wide, exact and adaptive. The rivals:
GCNConv (64 wide, also with its cached=True) and GATConv (8 heads of 8) on the undirected graph,
dropout 0.6, as their documentation writes them: node features are dense there, and sparse with
us, for that is how we keep features that are mostly zero. All run in one process and take turns
of a few epochs, so that a busy moment of the machine meets each; times are medians, the first
epoch of a turn left out, and only the ratios mean anything.
Peak memory is that of a process of its own, Python and torch included.
Writes benchmarks/results/epoch.json if all data sets are measured.
"""

import argparse
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch
from memory import peak_gib
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, elu
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.utils import to_undirected

from edgewise.core.recipe import Recipe
from edgewise.data.citation import load_citation
from edgewise.data.splits import Split, random_split
from edgewise.graphs.graph import Graph
from edgewise.nn.networks import VARIANTS
from edgewise.problems import node_problem
from edgewise.tasks import Task
from edgewise.training import Fitting, make_trainer

DATASETS = ("cora", "pubmed")
TURN = 4  # epochs
OURS = ("GCN", "GAT", "EGNN(C)", "EGNN(A)")
# ours, the rival, the aim for their ratio on each data set
AIMS = (
    ("EGNN(C)", "PyG GCN", {"cora": 1 / 10, "pubmed": 1 / 4}),
    ("EGNN(A)", "PyG GAT", {"cora": 1 / 3, "pubmed": 1.0}),
)


class PygNetwork(nn.Module):
    def __init__(self, kind: str, features: int, classes: int):
        super().__init__()
        if kind == "PyG GAT":
            self.first = GATConv(features, 8, heads=8, dropout=0.6)
            self.second = GATConv(64, classes, dropout=0.6)
        else:
            cached = kind == "PyG GCN cached"
            self.first = GCNConv(features, 64, cached=cached)
            self.second = GCNConv(64, classes, cached=cached)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = dropout(x, 0.6, self.training)
        x = dropout(elu(self.first(x, edge_index)), 0.6, self.training)
        return self.second(x, edge_index)


def our_epoch(graph: Graph, split: Split, variant: str) -> Callable[[], None]:
    recipe = Recipe(**asdict(VARIANTS[variant]))
    classes = tuple(map(str, range(int(graph.y.max()) + 1)))
    task = Task("classification", ("class",), classes)
    fitting = Fitting(make_trainer(node_problem(graph, task, split, recipe), recipe))

    def epoch() -> None:
        fitting.step()

    return epoch


def pyg_epoch(graph: Graph, split: Split, kind: str) -> Callable[[], None]:
    edge_index = to_undirected(graph.edge_index)
    network = PygNetwork(kind, graph.num_features, int(graph.y.max()) + 1)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.005, weight_decay=5e-4, fused=True)

    def epoch() -> None:
        network.train()
        optimizer.zero_grad()
        scores = network(graph.x, edge_index)
        cross_entropy(scores[split.train], graph.y[split.train]).backward()
        optimizer.step()
        network.eval()
        with torch.no_grad():
            scores = network(graph.x, edge_index)
            float(cross_entropy(scores[split.validation], graph.y[split.validation]))

    return epoch


def medians(contenders: dict[str, Callable[[], None]], epochs: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(-(-epochs // TURN) + 1):
        for name, epoch in contenders.items():
            for place in range(TURN + 1):
                start = time.perf_counter()
                epoch()
                if turn > 0 and place > 0:
                    times[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def peak_memory(dataset: str, variant: str) -> float:
    """GiB, the whole process included."""
    graph, _ = load_citation(dataset)
    split = random_split(graph.num_nodes, "dense", seed=0)
    epoch = our_epoch(graph, split, variant)
    for _ in range(3):
        epoch()
    return peak_gib()


def measure(dataset: str, epochs: int) -> dict:
    graph, _ = load_citation(dataset)
    split = random_split(graph.num_nodes, "dense", seed=0)
    contenders = {
        kind: pyg_epoch(graph, split, kind) for kind in ("PyG GCN", "PyG GCN cached", "PyG GAT")
    } | {variant: our_epoch(graph, split, variant) for variant in OURS}
    ms = medians(contenders, epochs)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        memory = pool.apply(peak_memory, (dataset, "EGNN(A)"))
    ratios = [
        {"ours": ours, "rival": rival, "ratio": ms[ours] / ms[rival], "aim": aims[dataset]}
        for ours, rival, aims in AIMS
    ]
    return {"ms": ms, "ratios": ratios, "peak_gib_of_EGNN(A)": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    arguments = parser.parse_args()
    results = {"threads": torch.get_num_threads(), "epochs": arguments.epochs}
    for dataset in arguments.datasets:
        results[dataset] = result = measure(dataset, arguments.epochs)
        print(f"\n| {dataset} | ms an epoch |\n|---|---:|")
        for name, ms in result["ms"].items():
            print(f"| {name} | {ms:.1f} |")
        for row in result["ratios"]:
            print(
                f"{row['ours']} takes {row['ratio']:.2f} of {row['rival']} (aim {row['aim']:.2f})"
            )
        print(f"EGNN(A) peaks at {result['peak_gib_of_EGNN(A)']:.2f} GiB")
    if set(arguments.datasets) != set(DATASETS):
        return
    path = Path(__file__).parent / "results" / "epoch.json"
    path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
