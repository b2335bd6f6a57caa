"""How fast are tables imported into a graph store, and how much memory does it take?

    python benchmarks/importing.py --edges 1000000 --edges 10000000

Synthetic directed graphs: a tenth as many nodes as edges, 32 features and a class of each node, 3
channels of each edge, sources drawn evenly and targets with hubs, the rows in random order, in
Parquet parts of 5 million edges or a million nodes. Each import is a process of its own, which
warms up on a tiny graph first. Peak memory is told twice: that of the process itself (RssAnon,
looked at ten times a second), and with the pages of files that the operating system keeps mapped
for it and may take back at any time (VmHWM). CPU seconds tell a busy machine from a slow import.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

FEATURES, CHANNELS, PART = 32, 3, 5_000_000
GIB = 2**30


def write_tables(folder: Path, edges: int, seed: int = 0) -> None:
    """Nodes and edges, a part at a time. Classes follow from two features, with noise."""
    draw = np.random.default_rng(seed)
    nodes = edges // 10
    for name in ("nodes", "edges"):
        (folder / name).mkdir(parents=True)
    for part, first in enumerate(range(0, nodes, PART // 5)):
        rows = min(PART // 5, nodes - first)
        x = draw.standard_normal((rows, FEATURES), dtype=np.float32)
        score = x[:, 0] - x[:, 1] + draw.standard_normal(rows, dtype=np.float32)
        columns = {"id": np.arange(first, first + rows), "y": np.digitize(score, (-1, 0, 1))}
        columns |= {f"x{k}": x[:, k] for k in range(FEATURES)}
        write_part(columns, folder / "nodes" / f"part-{part}.parquet")
    for part, first in enumerate(range(0, edges, PART)):
        rows = min(PART, edges - first)
        columns = {
            "source": draw.integers(0, nodes, rows),
            "target": (draw.random(rows) ** 2 * nodes).astype(np.int64),
        }
        columns |= {f"w{k}": draw.random(rows, dtype=np.float32) for k in range(CHANNELS)}
        write_part(columns, folder / "edges" / f"part-{part}.parquet")


def write_part(columns: dict[str, np.ndarray], path: Path) -> None:
    parquet.write_table(pa.table(columns), path, use_dictionary=False, compression="none")


def import_once(tables: Path, out: Path) -> dict[str, float]:
    """Import in this process, and say what it took."""
    import edgewise as ew

    with tempfile.TemporaryDirectory(dir=out.parent) as small:  # kernels are compiled
        write_tables(Path(small) / "tables", 1000)
        ew.import_graph(Path(small) / "tables", Path(small) / "graph", target="y", duplicates="sum")
    peak = [0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            peak[0] = max(peak[0], status("RssAnon"))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    phases: dict[str, float] = {}
    last = time.perf_counter()

    def progress(what: str, *_: object) -> None:
        nonlocal last
        now = time.perf_counter()
        phases[what] = phases.get(what, 0.0) + now - last
        last = now

    start, cpu = time.perf_counter(), time.process_time()
    store = ew.import_graph(tables, out, target="y", duplicates="sum", progress=progress)
    seconds = time.perf_counter() - start
    done.set()
    watcher.join()
    return {
        "edges": store.graph.num_edges + store.info.notes.merged_edges,
        "seconds": seconds,
        "cpu": time.process_time() - cpu,
        "anonymous": peak[0] / GIB,
        "resident": status("VmHWM") / GIB,
        "bytes": sum(path.stat().st_size for path in out.iterdir()) / GIB,
        "phases": phases,
    }


def status(name: str, process: int | str = "self") -> int:
    """A line of what Linux says about a process, in bytes."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def measured(edges: int, work: Path, keep: Path | None) -> dict[str, float]:
    tables, out = work / f"tables-{edges}", keep or work / f"graph-{edges}"
    write_tables(tables, edges)
    command = [sys.executable, __file__, "--one", str(tables), str(out)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(run.stderr)
    shutil.rmtree(tables)
    if keep is None:
        shutil.rmtree(out)
    return json.loads(run.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges", type=int, action="append", help="may be repeated")
    parser.add_argument("--work", type=Path, help="folder for tables and stores (a temporary one)")
    parser.add_argument("--keep", type=Path, help="where to leave the store of the last graph")
    parser.add_argument("--one", nargs=2, type=Path, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.one:
        print(json.dumps(import_once(*said.one)))
        return
    sizes = said.edges or [10**6, 10**7]
    print("| edges | s | CPU s | edges/CPU s | GiB | GiB with mapped files | GiB of the store |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    found = []
    with tempfile.TemporaryDirectory(dir=said.work) as work:
        for edges in sizes:
            result = measured(edges, Path(work), said.keep if edges == sizes[-1] else None)
            found.append(result)
            cells = [f"{result['edges']:,}", f"{result['seconds']:.1f}", f"{result['cpu']:.1f}"]
            cells += [f"{result['edges'] / result['cpu']:,.0f}"]
            cells += [f"{result[k]:.2f}" for k in ("anonymous", "resident", "bytes")]
            print(f"| {' | '.join(cells)} |", flush=True)
            phases = ", ".join(f"{k} {v:.1f} s" for k, v in result["phases"].items())
            print(f"<!-- {phases} -->", file=sys.stderr, flush=True)
    if len(found) > 1:
        first, last = found[0], found[-1]
        grown = math.log(last["edges"] / first["edges"])
        exponents = [math.log(last[k] / first[k]) / grown for k in ("cpu", "anonymous")]
        print(f"| exponent | | {exponents[0]:.2f} | | {exponents[1]:.2f} | | |")


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    main()
