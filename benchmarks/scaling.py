"""Do time and memory of an epoch grow linearly with the edges, and what would a formed E cost?

    python benchmarks/scaling.py [--sizes 10000 50000 ...]

Synthetic hub-heavy directed graphs: two citations per node, strongly biased to the oldest nodes,
so that the largest hub grows like nodes ** 0.75. Three channels, 16 features, two layers 16 wide,
8 classes. An epoch is a training step and a forward pass; its time is that of the fastest of
some, which other work of the machine disturbed least. Every row is a process of its own, so
that its peak memory is its own; GiB is by how much the graph and its training raise the peak of
an idle process. EGNN(A) is the variant without adaptation, which walks past hubs and forms
nothing. Beside them: the entries of the two-hop matrix E, and one product with it where it may be
formed at all. Up to 1,000,000 edges the rivals of PyTorch Geometric take turns with ours in one
process: GCNConv and GATConv, two layers 16 wide on the undirected graph, dropout 0.6. The exponent
is the slope of log(cost) over log(edges), fitted to the sizes from 100,000 on (entries of E: all
sizes that could be formed).
Writes benchmarks/results/scaling.json if all sizes are measured.
"""

import argparse
import json
import math
import multiprocessing
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from memory import peak_gib
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, elu
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.utils import to_undirected

from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import make_settings
from edgewise.data.splits import random_split
from edgewise.graphs.channels import add_self_loops, directed_channels
from edgewise.graphs.graph import Graph
from edgewise.nn.normalization import doubly_stochastic
from edgewise.tasks.classification import Classification
from edgewise.training import Fitting, make_trainer
from edgewise.units.node import node_problem

SIZES = (10_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000)
FITTED_FROM = 100_000
EPOCHS = 8  # of which the first is not counted
SETTINGS = {
    "EGNN(C)": make_settings("node", hidden=16),
    "EGNN(A)-A": make_settings("node", layer="attention", adapt=False, hidden=16),
}
RIVALS_UP_TO = 1_000_000
# ours, the rival, the aim for their ratio at a million edges
AIMS = (("EGNN(C)", "PyG GCN", 0.4), ("EGNN(A)-A", "PyG GAT", 1.5))


def hub_graph(edges: int, seed: int = 0) -> Graph:
    """Each node cites two earlier ones, biased to the oldest, whose hubs so grow with size."""
    generator = torch.Generator().manual_seed(seed)
    nodes = edges // 2
    citing = torch.arange(1, nodes).repeat_interleave(2)
    drawn = torch.rand(len(citing), generator=generator, dtype=torch.float64)
    cited = (drawn**4 * citing).long()
    x = torch.randn(nodes, 16, generator=generator)
    y = torch.randint(8, (nodes,), generator=generator)
    return Graph(x, torch.unique(torch.stack([citing, cited]), dim=1), y=y)


def epoch_cost(edges: int, variant: str) -> dict[str, float]:
    """Milliseconds of an epoch, and GiB above an idle process."""
    idle = peak_gib()
    epoch = our_epoch(hub_graph(edges), variant)
    times = [_milliseconds(epoch) for _ in range(EPOCHS)]
    return {"ms": min(times[1:]), "gib": peak_gib() - idle}


def our_epoch(graph: Graph, variant: str) -> Callable[[], object]:
    split = random_split(graph.num_nodes, "dense", seed=0)
    task = Classification(("y",), tuple("01234567"))
    problem, _ = node_problem(graph, task, graph.y, split, SETTINGS[variant])
    return Fitting(make_trainer(problem)).step


class PygNetwork(nn.Module):
    def __init__(self, convolution: type[nn.Module], **settings: float):
        super().__init__()
        self.first, self.second = convolution(16, 16, **settings), convolution(16, 8, **settings)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = elu(self.first(dropout(x, 0.6, self.training), edge_index))
        return self.second(dropout(x, 0.6, self.training), edge_index)


def rival_epoch(graph: Graph, kind: str) -> Callable[[], object]:
    split = random_split(graph.num_nodes, "dense", seed=0)
    edge_index = to_undirected(graph.edge_index)
    network = PygNetwork(GATConv, dropout=0.6) if kind == "PyG GAT" else PygNetwork(GCNConv)
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


def versus_pyg(edges: int) -> dict[str, float]:
    """Milliseconds of ours and of the rivals, which take turns in one process."""
    graph = hub_graph(edges)
    contenders = {variant: our_epoch(graph, variant) for variant in SETTINGS}
    contenders |= {kind: rival_epoch(graph, kind) for _, kind, _ in AIMS}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(EPOCHS):
        for name, epoch in contenders.items():
            times[name].append(_milliseconds(epoch))
    return {name: min(values[1:]) for name, values in times.items()}


def formed_cost(edges: int) -> dict[str, float | str]:
    """Entries of E and milliseconds of one product, or the sentence that refuses it."""
    graph = hub_graph(edges)
    channels = add_self_loops(*directed_channels(graph.edge_index), graph.num_nodes)
    operator = doubly_stochastic(*channels, graph.num_nodes)
    factored_entries = operator.factor.pattern.num_entries
    try:
        formed = operator.formed
    except EdgewiseError as error:
        return {"factor_entries": factored_entries, "refused": str(error)}
    timed = {}
    for name, matrix in (("product_ms", formed), ("factored_ms", operator)):
        times = [_milliseconds(lambda m=matrix: m @ graph.x) for _ in range(4)]
        timed[name] = statistics.median(times[1:])
    entries = formed.pattern.num_entries
    return {"factor_entries": factored_entries, "formed_entries": entries, **timed}


def _milliseconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return 1e3 * (time.perf_counter() - start)


def exponent(sizes: list[int], costs: list[float]) -> float:
    kept = [(math.log(s), math.log(c)) for s, c in zip(sizes, costs, strict=True) if c > 0]
    return float(np.polyfit(*zip(*kept, strict=True), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    sizes = parser.parse_args().sizes
    context = multiprocessing.get_context("spawn")
    rows = []
    print(
        "| edges | EGNN(C) ms | GiB | EGNN(A)-A ms | GiB | entries of B | entries of E | E x ms |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for edges in sizes:
        row: dict = {"edges": edges}
        for variant in SETTINGS:
            with context.Pool(1) as pool:
                row[variant] = pool.apply(epoch_cost, (edges, variant))
        with context.Pool(1) as pool:
            row["formed"] = formed = pool.apply(formed_cost, (edges,))
        if edges <= RIVALS_UP_TO:
            with context.Pool(1) as pool:
                row["versus PyG"] = ms = pool.apply(versus_pyg, (edges,))
            row["ratios"] = {f"{ours} / {rival}": ms[ours] / ms[rival] for ours, rival, _ in AIMS}
        rows.append(row)
        conv, attention = row["EGNN(C)"], row["EGNN(A)-A"]
        entries = f"{formed['formed_entries']:,}" if "formed_entries" in formed else "refused"
        product = f"{formed['product_ms']:.1f}" if "product_ms" in formed else ""
        print(
            f"| {edges:,} | {conv['ms']:.0f} | {conv['gib']:.2f} | {attention['ms']:.0f} | "
            f"{attention['gib']:.2f} | {formed['factor_entries']:,} | {entries} | {product} |"
        )
    large = [row for row in rows if row["edges"] >= FITTED_FROM]
    fits = {}
    if len(large) > 1:
        for variant in SETTINGS:
            for cost in ("ms", "gib"):
                fit = exponent([r["edges"] for r in large], [r[variant][cost] for r in large])
                fits[f"{variant} {cost}"] = fit
    formed_rows = [row for row in rows if "formed_entries" in row["formed"]]
    if len(formed_rows) > 1:
        fits["entries of E"] = exponent(
            [r["edges"] for r in formed_rows], [r["formed"]["formed_entries"] for r in formed_rows]
        )
    for row in rows:
        for ours, rival, aim in AIMS if "versus PyG" in row else ():
            ms = row["versus PyG"]
            print(
                f"{row['edges']:,} edges: {ours} takes {ms[ours] / ms[rival]:.2f} of {rival} "
                f"({ms[ours]:.0f} and {ms[rival]:.0f} ms; aim {aim} at a million)"
            )
    for name, fit in fits.items():
        print(f"{name} grows with edges to the power {fit:.2f}")
    for row in rows:
        if "refused" in row["formed"]:
            print(f"{row['edges']:,} edges: {row['formed']['refused']}")
            break
    if tuple(sizes) != SIZES:
        return
    path = Path(__file__).parent / "results" / "scaling.json"
    result = {"threads": torch.get_num_threads(), "rows": rows, "exponents": fits}
    path.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
