"""What memory does exact prediction of edges take in blocks, and on the whole graph at once?

    python benchmarks/edges_in_blocks.py

One Markdown row per size and way: the outputs of the default network (two gated layers 64 wide) for
all edges of a random graph with binary labels that are shown to others, 10 edges a node, 8 node
features, 3 channels, in one pass (no edge of training is asked for). Each runs in a process of its
own with one thread; `own` is the most memory that it held itself (RssAnon, looked at ten times a
second) less that before the pass, which is that of the graph; the lists of the edges of each node
and pair, which are made once, are in it. Seconds are the processor's. The last column is
the largest difference of the outputs of both ways, which are in single precision.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import torch
from importing import GIB, status

from edgewise import MultiGraph, make_settings
from edgewise.graphs.batch import computed_rows
from edgewise.graphs.edge_rows import EdgeRows
from edgewise.graphs.sampled_edge_rows import SampledEdgeRows
from edgewise.kernels.backend import set_num_threads
from edgewise.units.edge import EDGE

SIZES = (500_000, 1_000_000, 2_000_000)
WAYS = {"whole": EdgeRows, "blocks": SampledEdgeRows}


def made(way: str, edges: int) -> EdgeRows:
    generator = torch.Generator().manual_seed(0)
    nodes = edges // 10
    graph = MultiGraph(
        torch.randn(nodes, 8, generator=generator),
        torch.randint(nodes, (2, edges), generator=generator),
        torch.rand(edges, 3, generator=generator),
    )
    labels = (torch.rand(edges, 1, generator=generator) < 0.1).float()
    return WAYS[way](graph, labels=labels, known=torch.arange(edges) % 5 > 0)


def measure(way: str, edges: int, out: Path) -> dict[str, float]:
    set_num_threads(1)
    data = made(way, edges)
    torch.manual_seed(0)
    settings = make_settings("edge")
    model = EDGE.network(data.num_features, 1, data.num_channels, settings).eval()
    rows = torch.arange(0, edges, 5)  # those whose labels nobody sees
    with torch.no_grad():
        small = made(way, 2000)  # has the kernels compiled
        computed_rows(small, torch.arange(0, 2000, 5), model)
        before, most, done = status("RssAnon"), [0], threading.Event()

        def watch() -> None:
            while not done.wait(0.1):
                most[0] = max(most[0], status("RssAnon"))

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        start = time.process_time()
        found = computed_rows(data, rows, model)
        seconds = time.process_time() - start
        done.set()
        watcher.join()
    np.save(out, found.numpy())
    return {"GiB": (most[0] - before) / GIB, "before": before / GIB, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges", type=int, nargs="+", default=SIZES)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.one:
        way, edges, out = said.one
        print(json.dumps(measure(way, int(edges), Path(out))))
        return
    print("| edges | way | own GiB | before GiB | seconds | difference |")
    print("|---:|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for edges in said.edges:
            outputs = []
            for way in WAYS:
                out = Path(folder) / f"{way}.npy"
                done = subprocess.run(
                    [sys.executable, __file__, "--one", way, str(edges), str(out)],
                    capture_output=True, text=True, check=True,
                )  # fmt: skip
                found = json.loads(done.stdout.splitlines()[-1])
                outputs.append(np.load(out))
                difference = f"{np.abs(outputs[0] - outputs[-1]).max():.1e}"
                print(
                    f"| {edges:,} | {way} | {found['GiB']:.2f} | {found['before']:.2f} | "
                    f"{found['seconds']:.1f} | {difference if way == 'blocks' else ''} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
