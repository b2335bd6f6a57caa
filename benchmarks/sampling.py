"""Does sampled training reach the accuracy of the whole graph, and how many batches a second are
sampled?

    python benchmarks/sampling.py accuracy [--papers 84000] [--seeds 0 1]
    python benchmarks/sampling.py batches [--edges 1000000]

**accuracy**: a graph of a million edges whose labels depend on the direction and the kind of
edges (`edgewise.direction_and_kind_graph`; 1.0 is possible). The same network, two row-normalised
convolutions 16 wide, is trained on the whole graph and by sampled neighbours, and judged exactly.

**batches**: training batches a second of a processor's time, of 1,024 nodes with fan-outs 15 and
10, with their node features and the channels of their edges, by one thread. Beside ours a
sampler in plain torch (CSR, offsets drawn with replacement, `torch.unique` for the numbering), and
PyG's NeighborLoader where pyg-lib or torch-sparse is installed. Medians of 30 after 5.

Writes benchmarks/results/sampling.json, the part that was measured.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from scaling import hub_graph

from edgewise.core.presets import make_settings
from edgewise.data.splits import random_split
from edgewise.data.synthetic import direction_and_kind_graph
from edgewise.graphs.array_graph import ArrayGraph
from edgewise.graphs.sampled_graph import SampledGraph
from edgewise.kernels.sampling import Numbering
from edgewise.tasks.classification import Classification
from edgewise.training import Fitting, make_trainer
from edgewise.units.node import node_problem

RESULTS = Path(__file__).parent / "results" / "sampling.json"
NETWORK = {"normalize": "row", "hidden": 16, "dropout": 0.0}
# An epoch of the whole graph is one step.
WAYS = {
    "neighbors 5,5": {
        **{"neighbors": "5,5", "batch_size": 1024},
        **{"learning_rate": 0.01, "epochs": 8, "patience": 8},
    },
    "whole graph": {"learning_rate": 0.03, "epochs": 120, "patience": 120},
}
BATCH, FAN_OUTS = 1024, (15, 10)


def accuracy(papers: int, seeds: list[int], ways: list[str]) -> list[dict]:
    graph, _ = direction_and_kind_graph(papers)
    task = Classification(("topic",), tuple(map(str, range(int(graph.y.max()) + 1))))
    split = random_split(papers, (0.6, 0.2, 0.2), seed=0)
    rows = []
    for seed in seeds:
        for way in ways:
            settings = WAYS[way]
            chosen = make_settings("node", **NETWORK, **settings, seed=seed)
            problem, _ = node_problem(graph, task, graph.y, split, chosen)
            fitting, start = Fitting(make_trainer(problem)), time.process_time()
            while not fitting.done:
                print(fitting.step(), flush=True)
            seconds = time.process_time() - start
            fitting.restore_best()
            outputs = fitting.trainer.outputs(split.test)
            right = float((outputs.argmax(1) == graph.y[split.test]).double().mean())
            rows.append({"edges": graph.num_edges, "way": way, "seed": seed,
                         "epochs": len(fitting.history), "test accuracy": round(right, 4),
                         "standard error": round((right * (1 - right) / len(split.test)) ** 0.5, 4),
                         "CPU seconds": round(seconds, 1)})  # fmt: skip
            print(rows[-1], flush=True)
    return rows


class PlainSampler:
    """Neighbours with replacement, from the edges in both directions in CSR form."""

    def __init__(self, graph: ArrayGraph) -> None:
        edges = graph.adjacency
        source = torch.from_numpy(np.repeat(np.arange(graph.num_nodes), np.diff(edges.out_start)))
        target = torch.from_numpy(np.asarray(edges.target)).long()
        near, far = torch.cat([source, target]), torch.cat([target, source])
        order = near.argsort(stable=True)
        self.far, self.edge = far[order], order % graph.num_edges
        self.start = torch.searchsorted(near[order].contiguous(), torch.arange(graph.num_nodes + 1))
        self.x, self.attr = torch.from_numpy(graph.x), torch.from_numpy(graph.edge_attr)

    def batch(self, seeds: torch.Tensor) -> tuple[torch.Tensor, ...]:
        nodes, index, attr = seeds, [], []
        for fan_out in FAN_OUTS:
            first, count = self.start[nodes], self.start[nodes + 1] - self.start[nodes]
            some = count > 0
            drawn = (torch.rand(int(some.sum()), fan_out) * count[some].unsqueeze(1)).long()
            place = (first[some].unsqueeze(1) + drawn).flatten()
            far = self.far[place]
            near = nodes[some].repeat_interleave(fan_out)
            nodes = torch.cat([nodes, far]).unique()
            index.append(torch.stack([far, near]))
            attr.append(self.attr[self.edge[place]])
        local = torch.searchsorted(nodes, torch.cat(index, dim=1))
        return self.x[nodes], local, torch.cat(attr)


def neighbor_loader(graph: ArrayGraph) -> str:
    """PyG's own, if it runs here."""
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader

    source = np.repeat(np.arange(graph.num_nodes), np.diff(graph.adjacency.out_start))
    index = torch.from_numpy(np.stack([source, graph.adjacency.target]))
    data = Data(x=torch.from_numpy(graph.x), edge_index=index)
    try:
        next(iter(NeighborLoader(data, num_neighbors=list(FAN_OUTS), batch_size=BATCH)))
    except ImportError as error:
        return f"does not run: {error}"
    return "runs"


def batches(edges: int) -> list[dict]:
    torch.set_num_threads(1)
    graph = ArrayGraph.of(hub_graph(edges))
    data, numbering = SampledGraph(graph, FAN_OUTS), Numbering(graph.num_nodes)
    plain, draw = PlainSampler(graph), torch.Generator().manual_seed(0)
    times: dict[str, list[float]] = {"ours": [], "plain torch": []}
    size: dict[str, int] = {}
    for step in range(35):
        seeds = torch.randperm(graph.num_nodes, generator=draw)[:BATCH]
        start = time.thread_time()
        batch = data._sampled(seeds.numpy(), 10 * step, numbering)
        middle = time.thread_time()
        theirs = plain.batch(seeds)
        end = time.thread_time()
        if step >= 5:
            times["ours"].append(middle - start)
            times["plain torch"].append(end - middle)
        size = {"ours": len(batch.x), "plain torch": len(theirs[0])}
    rows = [
        {"edges": graph.num_edges, "sampler": name, "batches a CPU second":
         round(1 / statistics.median(spent), 1), "nodes of the last batch": size[name]}
        for name, spent in times.items()
    ]  # fmt: skip
    rows.append({"sampler": "PyG NeighborLoader", "note": neighbor_loader(graph)})
    print(*rows, sep="\n")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(dest="part", required=True)
    one = parts.add_parser("accuracy")
    one.add_argument("--papers", type=int, default=84_000)
    one.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    one.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    one = parts.add_parser("batches")
    one.add_argument("--edges", type=int, default=1_000_000)
    given = vars(parser.parse_args())
    part = given.pop("part")
    rows = {"accuracy": accuracy, "batches": batches}[part](**given)
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if part != "batches":
        rows = [*known.get(part, []), *rows]
    RESULTS.write_text(json.dumps({**known, part: rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
