"""Does memory grow with the number of edges alone, when edges are predicted?

    python benchmarks/million_edges.py

One Markdown row per size: an epoch of the default network on random edges with binary labels, 10
edges a node, 8 node features, 3 channels, 80 % of the edges for training. Each size runs in a
process of its own; `peak` is its largest resident memory less that before the epoch. One step (all
edges in one batch) and one thread.
"""

import json
import resource
import subprocess
import sys
import time

import torch

from edgewise import MultiGraph, make_settings
from edgewise.data.edge_reader import ReadEdges
from edgewise.data.graph_reader import TableNotes
from edgewise.data.splits import random_split
from edgewise.kernels.backend import set_num_threads
from edgewise.tasks.multilabel import Multilabel
from edgewise.training.trainer import make_trainer
from edgewise.units.edge_problem import edge_problem

SIZES = (125_000, 250_000, 500_000, 1_000_000)


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(edges: int) -> dict[str, float]:
    set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    nodes = edges // 10
    graph = MultiGraph(
        torch.randn(nodes, 8, generator=generator),
        torch.randint(nodes, (2, edges), generator=generator),
        torch.rand(edges, 3, generator=generator),
    )
    truth = (torch.rand(edges, 1, generator=generator) < 0.1).float()
    read = ReadEdges(graph, torch.arange(edges), None, None, TableNotes(0, 0, {}, 0))
    split = random_split(edges, (0.8, 0.1, 0.1), seed=0)
    settings = make_settings("edge", batch_size=1_000_000)
    trainer = make_trainer(edge_problem(read, Multilabel(("y",)), truth, split, settings))
    before, start = megabytes(), time.process_time()
    trainer.train_epoch(1)
    return {"peak": megabytes() - before, "seconds": time.process_time() - start}


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(measure(int(sys.argv[1]))))
        return
    print("| edges | peak MB | bytes an edge | seconds of the processor |")
    print("|---:|---:|---:|---:|")
    for edges in SIZES:
        done = subprocess.run(
            [sys.executable, __file__, str(edges)], capture_output=True, text=True, check=True
        )
        found = json.loads(done.stdout.splitlines()[-1])
        per_edge = found["peak"] * 2**20 / edges
        print(f"| {edges:,} | {found['peak']:,.0f} | {per_edge:,.0f} | {found['seconds']:.1f} |")


if __name__ == "__main__":
    main()
