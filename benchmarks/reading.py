"""How long, and how much memory, does a graph of two CSV files take to be read and checked?

Each way is measured in a process of its own, after its imports: edgewise from the files to a
checked ``Graph`` (kinds of columns, scaling, one-hot channels, labels, ids), and pandas with the
plain conversion to tensors of a script (no checks, no scaling).

    python benchmarks/reading.py
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from memory import peak_gib

RESULTS = Path(__file__).parent / "results" / "reading.json"
NUMBERS = [f"n{i}" for i in range(8)]


def write_tables(folder: Path, nodes: int, edges: int) -> None:
    """8 columns of numbers, a category and a label on nodes; a category and a number on edges."""
    import pandas

    random = np.random.default_rng(0)
    frame = pandas.DataFrame({"id": [f"node{i}" for i in range(nodes)]})
    for name in NUMBERS:
        frame[name] = random.normal(size=nodes).round(6)
    frame["city"] = random.choice(["Rome", "Oslo", "Bern", "Lima", "Cairo", "Quito"], nodes)
    frame["label"] = random.choice(["low", "middle", "high"], nodes)
    frame.to_csv(folder / "nodes.csv", index=False)
    pairs = random.choice(nodes * nodes, edges, replace=False, shuffle=False)
    ends = {"source": pairs // nodes, "target": pairs % nodes}
    links = pandas.DataFrame({name: [f"node{i}" for i in at] for name, at in ends.items()})
    links["kind"] = random.choice(["pays", "owns", "knows"], edges)
    links["amount"] = random.exponential(size=edges).round(4)
    links.to_csv(folder / "edges.csv", index=False)


def with_edgewise(folder: Path) -> dict[str, float]:
    import torch  # noqa: F401

    from edgewise.data.graph_files import read_folder
    from edgewise.data.graph_tables import learn_graph_reader

    idle, start = peak_gib(), time.perf_counter()
    nodes, edges = read_folder(folder)
    graph, _ = learn_graph_reader(nodes, edges, label="label").read(nodes, edges)
    return measured(start, idle, graph.num_nodes, graph.num_edges)


def with_pandas(folder: Path) -> dict[str, float]:
    import pandas
    import torch

    idle, start = peak_gib(), time.perf_counter()
    nodes = pandas.read_csv(folder / "nodes.csv")
    edges = pandas.read_csv(folder / "edges.csv")
    position = pandas.Series(range(len(nodes)), index=nodes["id"])
    ends = [position[edges[name]].to_numpy() for name in ("source", "target")]
    edge_index = torch.from_numpy(np.stack(ends))
    features = [nodes[NUMBERS], pandas.get_dummies(nodes["city"])]
    x = torch.from_numpy(np.concatenate(features, axis=1).astype(np.float32))
    y = torch.from_numpy(nodes["label"].astype("category").cat.codes.to_numpy().astype(np.int64))
    channels = [pandas.get_dummies(edges["kind"]), edges[["amount"]]]
    edge_attr = torch.from_numpy(np.concatenate(channels, axis=1).astype(np.float32))
    assert len(y) == len(x)
    assert len(edge_attr) == edge_index.size(1)
    return measured(start, idle, len(x), edge_index.size(1))


def measured(start: float, idle: float, nodes: int, edges: int) -> dict[str, float]:
    seconds, megabytes = time.perf_counter() - start, (peak_gib() - idle) * 1024
    return {"seconds": seconds, "megabytes": megabytes, "nodes": nodes, "edges": edges}


WAYS = {"edgewise": with_edgewise, "pandas": with_pandas}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", nargs=2, metavar=("WAY", "FOLDER"), help="in this process")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(WAYS[options.measure[0]](Path(options.measure[1]))))
        return
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder), options.nodes, options.edges)
        for _ in range(options.repeats):
            for way in WAYS:
                command = [sys.executable, __file__, "--measure", way, folder]
                told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                runs[way].append(json.loads(told))
    best = {way: min(results, key=lambda r: r["seconds"]) for way, results in runs.items()}
    ratio = best["edgewise"]["seconds"] / best["pandas"]["seconds"]
    print(f"{options.nodes:,} nodes, {options.edges:,} edges; best of {options.repeats}")
    print(f"{'':10}{'seconds':>9}{'peak MB':>9}")
    for way, result in best.items():
        print(f"{way:10}{result['seconds']:9.2f}{result['megabytes']:9.0f}")
    print(f"edgewise takes {ratio:.2f} times as long as pandas")
    RESULTS.write_text(json.dumps({**best, "ratio": ratio}, indent=1) + "\n")


if __name__ == "__main__":
    main()
