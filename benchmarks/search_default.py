"""Which settings should be the default for whole graphs? Each option on validation data alone.

    python benchmarks/search_default.py                    # every question, about an hour
    python benchmarks/search_default.py --questions channels --datasets freesolv
    python benchmarks/search_default.py --table            # what is known so far

A question changes one setting of the preset `default` and keeps the others. Splits are 80/10/10 by
`numpy.random.RandomState(s).permutation(rows)` with s = 100, 101, ..., which no table reports;
`small` is FreeSolv with the first 100 of its training rows. Only validation rows are scored: RMSE,
or mean ROC AUC. Several ways to predict are scored in the same run: `last` is by the weights of the
last epoch, `average` by their moving average, and `best` by those of the epoch with the lowest
loss, chosen on one half of the validation rows and scored on the other, and the other way round, so
that no row is scored that chose. `blend` is `best` with descriptors, whose weight is chosen in the
same way, `last+d` is `last` with descriptors; `descriptors` are those alone. A run is a line of
benchmarks/results/search_default.jsonl with all settings that differ from the defaults, so the
script can be stopped and continued.
"""

import argparse
import copy
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.core.presets import OF_MOLECULES, make_settings
from edgewise.core.settings import Settings
from edgewise.data.chemistry import read_smiles
from edgewise.data.molecule_tables import read_named
from edgewise.data.splits import Split
from edgewise.kernels.backend import set_num_threads
from edgewise.tasks.reading import find_task
from edgewise.training.stack import blending_weight, fit
from edgewise.training.trainer import Trainer, make_trainer, model_outputs
from edgewise.units.base import Problem
from edgewise.units.graph import molecule_problem

RESULTS = Path(__file__).parent / "results" / "search_default.jsonl"
SPLITS = {
    "freesolv": range(100, 105),
    "small": range(100, 105),
    "lipo": range(100, 104),
    "tox21": range(100, 102),
}
SMALL = 100  # training rows
DECAY = 0.99  # of the moving average, per step
QUESTIONS: dict[str, tuple[Any, ...]] = {
    "channels": (32, 0),
    "normalize": ("none", "row", "symmetric", "doubly_stochastic"),
    "batch_size": (64, 32, 16),
    "epochs": (60, 100, 30),
    "learning_rate": (1e-3, 5e-4, 2e-3),
    "dropout": (0.0, 0.1, 0.3),
    "weight_decay": (1e-5, 0.01, 0.1),
    "feed_forward": (2, 1, 0),
    "residual": (True, False),
    "norm": ("none", "batch", "layer"),
    "head": ("mlp", "linear"),
    "hidden": (128, 256),
    "depth": (4, 3, 6),
    "pooling": ("mean+max+sum", "mean", "sum", "max", "attention", "mean+max+sum+attention"),
    "featurizer": ("properties", "rich", "paper"),
}
# What was preset when some of the questions were asked, and what the table calls it.
EARLIER: dict[str, dict[str, Any]] = {
    "batch norm": {"norm": "batch"},
    "rich": {"norm": "batch", "featurizer": "rich"},
}
WAYS = ("last", "best", "average", "descriptors", "last+d", "blend")


def problem_of(dataset: str, split: int, settings: Settings) -> Problem:
    source = read_named("freesolv" if dataset == "small" else dataset)
    task, truth = find_task(source.table, source.targets, "auto", ())
    codes = read_smiles(source.smiles)
    order = torch.from_numpy(np.random.RandomState(split).permutation(len(codes)))
    first, second = int(0.8 * len(codes)), int(0.9 * len(codes))
    train = order[: SMALL if dataset == "small" else first]
    rows = Split(train, order[first:second], order[:0])
    return molecule_problem(codes, task, truth[torch.from_numpy(codes.rows)], rows, settings)


class Averaging(Trainer):
    """Training as it is, and a moving average of the weights beside it."""

    averaged: Any = None

    def _step(self, outputs: Tensor, rows: Tensor) -> Tensor:
        loss = super()._step(outputs, rows)
        if self.averaged is None:
            self.averaged = copy.deepcopy(self.model)
        pairs = zip(
            self.averaged.state_dict().values(), self.model.state_dict().values(), strict=True
        )
        with torch.no_grad():
            for mean, now in pairs:
                mean.lerp_(now, 1 - DECAY) if mean.is_floating_point() else mean.copy_(now)
        return loss


def by_descriptors(problem: Problem) -> np.ndarray:
    """What kernel regression on descriptors predicts for the validation rows."""
    smiles, task = problem.data.ids, problem.task
    train, validation = problem.split.train.tolist(), problem.split.validation.tolist()
    truth = task.decoded_truth(problem.truth)[train].astype(np.float64)
    stack = fit([smiles[row] for row in train], truth, task.single_label)
    return stack.predict([smiles[row] for row in validation])


def run(dataset: str, split: int, settings: Settings) -> dict[str, Any]:
    problem = problem_of(dataset, split, settings)
    plain = make_trainer(problem)
    trainer = Averaging(problem, plain.model)
    rows, task = problem.split.validation, problem.task
    truth, epochs = problem.truth[rows], settings.training.epochs
    outputs: list[Tensor] = []
    seconds = 0.0
    for epoch in range(1, epochs + 1):
        start = time.process_time()
        trainer.train_epoch(epoch)
        seconds += time.process_time() - start
        outputs.append(trainer.outputs(rows))
    average = model_outputs(trainer.averaged, problem, rows)

    def score(out: Tensor) -> float:
        return round(task.score(task.decode(out).numpy(), truth.numpy()), 4)

    halves = torch.arange(len(rows)).chunk(2)
    crossed = torch.empty_like(average)
    described = by_descriptors(problem)
    blends = {"last+d": described.copy(), "blend": described.copy()}
    for mine, other in (halves, halves[::-1]):
        losses = [float(task.loss(out[mine], truth[mine], None)) for out in outputs]
        best = outputs[int(np.argmin(losses))]
        crossed[other] = best[other]
        for blend, kept in zip(blends.values(), (outputs[-1], best), strict=True):
            found = task.decode(kept).numpy()
            weight = blending_weight(task.decoded_truth(truth[mine]), found[mine], described[mine])
            blend[other] = (1 - weight) * found[other] + weight * described[other]
    return {
        "last": score(outputs[-1]),
        "best": score(crossed),
        "average": score(average),
        "descriptors": round(task.score(described, truth.numpy()), 4),
        **{way: round(task.score(blend, truth.numpy()), 4) for way, blend in blends.items()},
        "history": [score(out) for out in outputs[4::5]],
        "train_cpu_seconds": round(seconds, 1),
    }


def stored(path: Path) -> list[dict[str, Any]]:
    """What earlier runs left behind."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def jobs(
    questions: list[str], datasets: list[str], most: int, given: dict[str, Any]
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    for question in questions:
        for dataset in datasets:
            for option in QUESTIONS[question]:
                for split in SPLITS[dataset][:most]:
                    changes = {"descriptors": "none", **given, question: option}
                    settings = make_settings("graph", implied=OF_MOLECULES, **changes)
                    different = settings.differences()
                    yield question, option, {"dataset": dataset, "s": split, "settings": different}


def table(path: Path, planned: list[tuple[str, Any, dict[str, Any]]]) -> str:
    """The mean of each option over the splits that all options of its question have."""
    lines = [
        f"| data | setting | value | splits | {' | '.join(WAYS)} | CPU s |",
        "|---|---|---|---:|" + "---:|" * (len(WAYS) + 1),
    ]
    return "\n".join(lines + answers_to(path, planned))


def answers_to(
    path: Path, planned: list[tuple[str, Any, dict[str, Any]]], note: str = ""
) -> list[str]:
    """The rows of the table; a note stands behind the name of the data."""
    done = stored(path)
    answers: dict[tuple[str, str], dict[Any, dict[int, dict[str, Any]]]] = {}
    for question, option, job in planned:
        for line in (line for line in done if job.items() <= line.items()):
            options = answers.setdefault((job["dataset"], question), {})
            options.setdefault(option, {})[job["s"]] = line
    lines = []
    for (dataset, question), options in answers.items():
        common = set.intersection(*(set(found) for found in options.values()))
        if len(options) == 1 or not common:
            continue  # the preset alone is no answer
        for option, found in options.items():
            some = [found[split] for split in sorted(common)]
            means = [np.mean([line.get(way, np.nan) for line in some]) for way in WAYS]
            shown = ("" if np.isnan(mean) else f"{mean:.3f}" for mean in means)
            cost = np.mean([line["train_cpu_seconds"] for line in some])
            lines.append(
                f"| {dataset}{note} | {question} | {option} | {len(some)} | "
                + " | ".join(shown)
                + f" | {cost:.0f} |"
            )
    return lines


def known_table(path: Path = RESULTS) -> str:
    """The answers of the questions asked with the preset of today, or with those before it."""
    every = list(QUESTIONS), list(SPLITS), 5
    rows = [table(path, list(jobs(*every, {})))]
    for note, then in EARLIER.items():
        asked = [job for job in jobs(*every, then) if job[0] not in then]
        rows += answers_to(path, asked, f", {note}")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", nargs="+", default=list(QUESTIONS), choices=list(QUESTIONS))
    parser.add_argument("--datasets", nargs="+", default=["freesolv"], choices=list(SPLITS))
    parser.add_argument("--splits", type=int, default=5, help="at most so many for each data set")
    parser.add_argument(
        "--set", nargs="+", default=[], help="other settings, as NAME=VALUE in JSON"
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="train nothing")
    arguments = parser.parse_args()
    set_num_threads(1)
    given = {
        name: json.loads(value) for name, _, value in (w.partition("=") for w in arguments.set)
    }
    planned = list(jobs(arguments.questions, arguments.datasets, arguments.splits, given))
    for _, _, job in planned if not arguments.table else ():
        if any(job.items() <= line.items() for line in stored(arguments.results)):
            continue
        settings = Settings().changed(**job["settings"])
        line = {**job, **run(job["dataset"], job["s"], settings)}
        with arguments.results.open("a") as file:
            file.write(json.dumps(line) + "\n")
    print(table(arguments.results, planned))


if __name__ == "__main__":
    main()
