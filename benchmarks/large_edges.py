"""What do the commands take where edges are predicted, from a million to ten million edges?

    python benchmarks/large_edges.py --work FOLDER --edges 1000000 10000000

Synthetic directed graphs of `importing.py`: a tenth as many nodes as edges, 32 features, 3
channels, targets with hubs, in Parquet parts. The label of an edge is whether the sum of a feature
of its source, one of its target and two of its own numbers, with noise, is above 0.

**import**: `edgewise import --predict edges`. **train**: `edgewise train --neighbors 10,5` on the
store with batches of 1,024 edges, one epoch over 3 % of the edges, 1 % for exact validation, and at
its end a line of predictions for each edge and a report. **predict**: `edgewise predict` of all
edges into Parquet. **links**: `edgewise train --predict links --neighbors 10,5` on the graph store
of the same tables (`edgewise import`, repeated edges summed up), with as many links.

Every command is a process of its own with one thread, and a line of
benchmarks/results/large_edges.jsonl; what is there already is not measured again. GiB: the most
that the process held itself (RssAnon, looked at ten times a second), and with the pages of files
that are mapped, which the system may take back (VmHWM). The last lines printed are the table.
"""

import argparse
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
from importing import write_tables
from large_graph import commanded
from pyarrow import parquet

RESULTS = Path(__file__).parent / "results" / "large_edges.jsonl"
SHARES = "0.03,0.01,0.96"
SAMPLED = ("--neighbors", "10,5", "--batch-size", "1024", "--epochs", "1", "--split", SHARES)


def write_labels(tables: Path, seed: int = 1) -> None:
    """Add a label to each edge, which follows from its nodes and its own numbers."""
    draw = np.random.default_rng(seed)
    parts = sorted((tables / "nodes").iterdir(), key=lambda path: int(path.stem.split("-")[1]))
    x0, x1 = (
        np.concatenate([parquet.read_table(p, columns=[name])[name].to_numpy() for p in parts])
        for name in ("x0", "x1")
    )
    for part in (tables / "edges").iterdir():
        table = parquet.read_table(part)
        source, target, w0, w1 = (
            table[name].to_numpy() for name in ("source", "target", "w0", "w1")
        )
        score = x0[source] - x1[target] + 3 * (w0 - w1) + draw.standard_normal(len(source))
        table = table.append_column("good", pa.array((score > 0).astype(np.int64)))
        parquet.write_table(table, part, use_dictionary=False, compression="none")


def imported(folder: Path) -> dict:
    shutil.rmtree(folder / "store", ignore_errors=True)
    said = ("--predict", "edges", "--target", "good", "--split", SHARES, "--ignore", "y")
    return commanded("import", str(folder / "tables"), *said, "--out", str(folder / "store"))


def trained(folder: Path) -> dict:
    shutil.rmtree(folder / "run", ignore_errors=True)
    found = commanded(
        *("train", str(folder / "store"), *SAMPLED, "--out", str(folder / "run"), "--quiet")
    )
    metrics = json.loads((folder / "run" / "metrics.json").read_text())
    return {**found, "test ROC AUC": round(metrics["test"]["roc_auc"], 4)}


def predicted(folder: Path) -> dict:
    out = str(folder / "predictions.parquet")
    return commanded("predict", str(folder / "run"), str(folder / "store"), "--out", out)


def links(folder: Path) -> dict:
    if not (folder / "graph").exists():
        said = ("--target", "y", "--duplicates", "sum", "--ignore", "good")
        commanded("import", str(folder / "tables"), *said, "--out", str(folder / "graph"))
    shutil.rmtree(folder / "links", ignore_errors=True)
    said = ("--predict", "links", *SAMPLED, "--out", str(folder / "links"), "--quiet")
    return commanded("train", str(folder / "graph"), *said)


PHASES = {"import": imported, "train": trained, "predict": predicted, "links": links}


def known() -> list[dict]:
    return list(map(json.loads, RESULTS.read_text().splitlines())) if RESULTS.exists() else []


def measure(size: int, phase: str, work: Path) -> None:
    folder = work / str(size)
    if not (folder / "tables.done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        write_tables(folder / "tables", size)
        write_labels(folder / "tables")
        (folder / "tables.done").touch()
    line = {"size": size, "phase": phase, **PHASES[phase](folder)}
    with RESULTS.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder for tables and stores")
    parser.add_argument("--edges", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument(
        "--phases", nargs="+", choices=PHASES, default=["import", "train", "predict"]
    )
    said = parser.parse_args()
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    for size in said.edges:
        for phase in said.phases:
            if not any((line["size"], line["phase"]) == (size, phase) for line in known()):
                measure(size, phase, said.work)
    print("| edges | command | CPU seconds | own GiB | with mapped files |")
    print("|---:|---|---:|---:|---:|")
    for line in sorted(known(), key=lambda line: (line["size"], list(PHASES).index(line["phase"]))):
        print(
            f"| {line['size']:,} | {line['phase']} | {line['CPU seconds']:,.0f} | "
            f"{line['GiB']} | {line['GiB with mapped files']} |"
        )


if __name__ == "__main__":
    main()
