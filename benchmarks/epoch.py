"""How long does one epoch take, against the same job in PyTorch Geometric?

    python benchmarks/epoch.py [--epochs 20] [--datasets cora pubmed]

One epoch is a training step on the whole graph and a forward pass for validation, on the dense
split. Ours: EGNN(C) and EGNN(A), three channels, 64 wide, exact and adaptive. The rivals:
GCNConv (64 wide, also with its cached=True) and GATConv (8 heads of 8) on the undirected graph,
dropout 0.6, as their documentation writes them: node features are dense there, and sparse with
us, for that is how we keep features that are mostly zero. The third rival, "CSR GCN", is what an
expert would write in torch alone: the same GCN as products with torch.sparse CSR matrices, sparse
node features included, normalised once. All run in one process and take turns of a few epochs, so
that a busy moment of the machine slows each; times are medians, the first epoch of a turn left
out, and only the ratios mean anything.
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
from typing import Any

import torch
from memory import peak_gib
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, elu
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_undirected

from edgewise.core.presets import make_settings
from edgewise.data.citation import load_citation
from edgewise.data.splits import Split, random_split
from edgewise.graphs.graph import Graph
from edgewise.nn.network import VARIANTS
from edgewise.tasks.classification import Classification
from edgewise.training import Fitting, make_trainer
from edgewise.units.node import node_problem

DATASETS = ("cora", "pubmed")
TURN = 4  # epochs
OURS = ("GCN", "GAT", "EGNN(C)", "EGNN(A)")
RIVALS = ("PyG GCN", "PyG GCN cached", "CSR GCN", "PyG GAT")
# ours, the rival, the aim for their ratio on each data set
AIMS = (
    ("EGNN(C)", "PyG GCN", {"cora": 0.10, "pubmed": 0.20}),
    ("EGNN(C)", "CSR GCN", {"cora": 1.0, "pubmed": 0.60}),
    ("EGNN(A)", "PyG GAT", {"cora": 0.33, "pubmed": 0.90}),
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


class CsrProduct(torch.autograd.Function):
    """``matrix @ dense`` whose gradient uses a transpose that was made once."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, transpose: Tensor, dense: Tensor) -> Tensor:
        ctx.transpose = transpose
        return matrix @ dense

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, Tensor]:
        return None, None, ctx.transpose @ grads[0]


class CsrGcn(nn.Module):
    """GCN as CSR products: the features times a weight, the normalised edges times the result."""

    def __init__(self, graph: Graph, classes: int):
        super().__init__()
        self.first, self.second = nn.Linear(graph.num_features, 64), nn.Linear(64, classes)
        self.edges = normalised_csr(graph.edge_index, graph.num_nodes)
        features = graph.x.to_sparse_csr()
        transpose = graph.x.t().contiguous().to_sparse_csr()
        nonzero = torch.arange(1, len(features.values()) + 1, dtype=torch.float64)
        places = torch.sparse_csr_tensor(
            features.crow_indices(), features.col_indices(), nonzero, features.shape
        )
        order = places.to_dense().t().contiguous().to_sparse_csr().values().long() - 1
        self.features, self.transpose, self.order = features, transpose, order

    def forward(self) -> Tensor:
        value = dropout(self.features.values(), 0.6, self.training)
        x = with_values(self.features, value)
        transpose = with_values(self.transpose, value[self.order])
        h = CsrProduct.apply(x, transpose, self.first.weight.t().contiguous())
        h = elu(CsrProduct.apply(self.edges, self.edges, h) + self.first.bias)
        h = dropout(h, 0.6, self.training)
        h = h @ self.second.weight.t()
        return CsrProduct.apply(self.edges, self.edges, h) + self.second.bias


def normalised_csr(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The symmetric matrix of GCN."""
    (row, column), weight = gcn_norm(to_undirected(edge_index), num_nodes=num_nodes)
    return torch.sparse_coo_tensor(
        torch.stack([row, column]), weight, (num_nodes, num_nodes)
    ).to_sparse_csr()


def with_values(matrix: Tensor, value: Tensor) -> Tensor:
    return torch.sparse_csr_tensor(
        matrix.crow_indices(), matrix.col_indices(), value, matrix.shape, check_invariants=False
    )


def our_epoch(graph: Graph, split: Split, variant: str) -> Callable[[], None]:
    settings = make_settings("node", "paper", **asdict(VARIANTS[variant]))
    classes = tuple(map(str, range(int(graph.y.max()) + 1)))
    task = Classification(("class",), classes)
    problem, _ = node_problem(graph, task, graph.y, split, settings)
    fitting = Fitting(make_trainer(problem))

    def epoch() -> None:
        fitting.step()

    return epoch


def rival_epoch(graph: Graph, split: Split, kind: str) -> Callable[[], None]:
    classes = int(graph.y.max()) + 1
    inputs: tuple[Tensor, ...] = ()
    if kind == "CSR GCN":
        network: nn.Module = CsrGcn(graph, classes)
    else:
        network = PygNetwork(kind, graph.num_features, classes)
        inputs = graph.x, to_undirected(graph.edge_index)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.005, weight_decay=5e-4, fused=True)

    def epoch() -> None:
        network.train()
        optimizer.zero_grad()
        scores = network(*inputs)
        cross_entropy(scores[split.train], graph.y[split.train]).backward()
        optimizer.step()
        network.eval()
        with torch.no_grad():
            scores = network(*inputs)
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
    contenders = {kind: rival_epoch(graph, split, kind) for kind in RIVALS} | {
        variant: our_epoch(graph, split, variant) for variant in OURS
    }
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
