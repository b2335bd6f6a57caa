"""How well and how fast is chemprop on the same molecules, in the same splits?

    python benchmarks/versus_chemprop.py                       # everything, many hours on one core
    python benchmarks/versus_chemprop.py --datasets freesolv --splits random --seeds 0 1

chemprop 2.3.1 runs with its defaults and 50 epochs, one thread, through its own command line, in an
environment of its own (made on the first run). Splits are 80/10/10: `random` is cut from
`numpy.random.RandomState(seed).permutation(rows)`, `scaffold` is ours with that seed; both sides
read the same files. A run is one line of benchmarks/results/versus_chemprop.jsonl, appended when it
is done, so the script can be stopped and continued. Seconds are those of a whole process, import
included: `cpu` of its processor time, `wall` by the clock, which means little on a busy machine.
Scores are of the test molecules: RMSE, or ROC AUC averaged over the assays.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from edgewise.data.molecule_splits import scaffold_split
from edgewise.data.molecule_tables import MoleculeTable, read_named

HERE = Path(__file__).parent
CHEMPROP, EPOCHS = "2.3.1", 50
DATASETS = {"freesolv": "regression", "lipo": "regression", "tox21": "classification"}
SPLITS = ("random", "scaffold")


def split_rows(source: MoleculeTable, kind: str, seed: int) -> dict[str, list[int]]:
    """The rows of the three subsets, counted from 0."""
    if kind == "scaffold":
        parts = scaffold_split(source.smiles, seed=seed).parts()
        return {name: rows.tolist() for name, rows in parts.items()}
    shuffled = np.random.RandomState(seed).permutation(len(source)).tolist()
    first, second = int(0.8 * len(source)), int(0.9 * len(source))
    return {
        "train": shuffled[:first],
        "validation": shuffled[first:second],
        "test": shuffled[second:],
    }


def score(observed: np.ndarray, predicted: np.ndarray, task: str) -> float:
    """RMSE, or the mean ROC AUC of the assays that have both classes."""
    if task == "regression":
        return float(np.sqrt(np.mean((observed - predicted) ** 2)))
    areas = []
    for truth, guess in zip(observed.T, predicted.T, strict=True):
        known = ~np.isnan(truth)
        if len(np.unique(truth[known])) == 2:
            areas.append(roc_auc_score(truth[known], guess[known]))
    return float(np.mean(areas))


def environment(folder: Path) -> Path:
    """The program of chemprop, installed into ``folder`` if it is not there."""
    program = folder / "bin" / "chemprop"
    if not program.exists():
        venv.create(folder, with_pip=True)
        # torch first, as built here: chemprop alone would bring the largest build there is.
        built = torch.__version__.split("+")[0]
        for package in (f"torch=={built}", f"chemprop=={CHEMPROP}"):
            subprocess.run([folder / "bin" / "pip", "install", "-q", package], check=True)
    return program


def write_table(path: Path, source: MoleculeTable, rows: Sequence[int], *, targets: bool) -> None:
    names = source.target_names if targets else ()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles", *names])
        for row in rows:
            values = source.targets[row] if targets else ()
            writer.writerow([source.smiles[row], *("" if np.isnan(v) else v for v in values)])


def run(command: Sequence[Any], log: Path) -> dict[str, float]:
    """Run a program on one thread; how long it took, and its peak memory."""
    one = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    start = time.perf_counter()
    with log.open("w") as file:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **one},
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"chemprop ended with code {process.returncode}; its output is in {log}")
    return {
        "wall": round(time.perf_counter() - start, 1),
        "cpu": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_gib": round(usage.ru_maxrss / 2**20, 3),
    }


def chemprop(
    program: Path,
    source: MoleculeTable,
    name: str,
    rows: dict[str, list[int]],
    seed: int,
    out: Path,
) -> dict[str, Any]:
    """Train and predict once."""
    out.mkdir(parents=True, exist_ok=True)
    write_table(out / "all.csv", source, range(len(source)), targets=True)
    write_table(out / "test.csv", source, rows["test"], targets=False)
    split = {"train": rows["train"], "val": rows["validation"], "test": rows["test"]}
    (out / "splits.json").write_text(json.dumps([split]))
    train = run(
        [program, "train", "--data-path", out / "all.csv", "--task-type", DATASETS[name],
         "--splits-file", out / "splits.json", "--epochs", EPOCHS, "--output-dir", out / "model",
         "--pytorch-seed", seed, "--accelerator", "cpu"],
        out / "train.log",
    )  # fmt: skip
    predict = run(
        [program, "predict", "--test-path", out / "test.csv", "--preds-path", out / "predicted.csv",
         "--model-paths", out / "model" / "model_0" / "best.pt", "--accelerator", "cpu"],
        out / "predict.log",
    )  # fmt: skip
    with (out / "predicted.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    if [line["smiles"] for line in table] != [source.smiles[row] for row in rows["test"]]:
        raise SystemExit(f"{out / 'predicted.csv'} does not list the test molecules in their order")
    predicted = np.array([[float(line[t]) for t in source.target_names] for line in table])
    observed = source.targets[rows["test"]]
    return {
        "test_score": round(score(observed, predicted, DATASETS[name]), 5),
        "train": train,
        "predict": predict,
    }


def jobs(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    return [
        {"model": "chemprop", "dataset": name, "split": kind, "seed": seed}
        for kind in arguments.splits
        for name in arguments.datasets
        for seed in arguments.seeds
    ]


def stored(path: Path) -> list[dict[str, Any]]:
    """What earlier runs left behind."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=list(DATASETS))
    parser.add_argument("--splits", nargs="+", default=SPLITS, choices=SPLITS)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--work", type=Path, default=HERE.parent / "build" / "versus_chemprop")
    parser.add_argument("--environment", type=Path, help="default: WORK/environment")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "versus_chemprop.jsonl")
    arguments = parser.parse_args()
    done = stored(arguments.results)
    program = environment(arguments.environment or arguments.work / "environment")
    for job in jobs(arguments):
        if any(job.items() <= line.items() for line in done):
            continue
        name, kind, seed = job["dataset"], job["split"], job["seed"]
        source = read_named(name)
        rows = split_rows(source, kind, seed)
        out = arguments.work / f"{name}-{kind}-{seed}"
        result = chemprop(program, source, name, rows, seed, out)
        line = {**job, "version": CHEMPROP, "epochs": EPOCHS, **result}
        with arguments.results.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
