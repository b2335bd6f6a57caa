"""By which measure of its first epochs should a regime for nodes be chosen?

    python benchmarks/choosing_regimes.py --datasets citeseer cora --splits 100 101
    python benchmarks/choosing_regimes.py --table                    # train nothing

On splits that no table reports, each regime of the portfolio is trained to its end, once, as if it
had been named. A line of benchmarks/results/choosing_regimes.jsonl holds its validation scores
from epoch to epoch, as far as the portfolio looks, and the test score of the weights that are
kept. The table says what each rule would have chosen, by successive halving as in training, and
the mean test score of the choice: `best epoch` compares by the best validation score so far,
`mean of N` by the highest mean of N epochs in a row. `best possible` is the regime with the
highest test score, `always` one regime for all. In percent.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from versus_pyg import (
    DATASETS,
    SHAPES,
    TUNED_ON,
    TUNED_ON_SEED,
    load,
    make_problem,
    probabilities,
    score,
)

from edgewise.kernels.backend import set_num_threads
from edgewise.training import fit_member
from edgewise.training.portfolio import RUNGS, regimes_of

RESULTS = Path(__file__).parent / "results" / "choosing_regimes.jsonl"
WINDOWS = (5, 10, 20, 40)
Measure = Callable[[Sequence[float]], float]


def best_epoch(scores: Sequence[float]) -> float:
    return max(scores)


def mean_of(window: int) -> Measure:
    """The highest mean of so many epochs in a row."""

    def measure(scores: Sequence[float]) -> float:
        width = min(window, len(scores))
        return float(np.convolve(scores, np.full(width, 1 / width), "valid").max())

    return measure


RULES: dict[str, Measure] = {
    "best epoch": best_epoch,
    **{f"mean of {window}": mean_of(window) for window in WINDOWS},
}


def trained(dataset: str, number: int) -> list[dict[str, Any]]:
    """A line for each regime."""
    graph, split = load(dataset, number)
    problem = make_problem(dataset, graph, split, number)
    assert graph.y is not None
    rows, found = split.test.numpy(), []
    for name, one in regimes_of(problem).items():
        start = time.process_time()
        fitting = fit_member(one)
        probability = probabilities(one.task, fitting)
        scores = [round(epoch.validation_score, 5) for epoch in fitting.history[: RUNGS[-1]]]
        test = score(dataset, probability[rows], graph.y.numpy()[rows])
        line = {"dataset": dataset, "split": number, "regime": name, "test": round(test, 5)}
        cpu = round(time.process_time() - start, 1)
        found.append({**line, "cpu": cpu, "validation": scores})
    return found


def chosen(curves: dict[str, Sequence[float]], measure: Measure) -> str:
    """The regime that successive halving takes."""
    left = list(curves)
    for epochs in RUNGS:
        values = {name: measure(curves[name][:epochs]) for name in left}
        left = sorted(left, key=lambda name: -values[name])[: math.ceil(len(left) / 2)]
    return left[0]


def table(path: Path = RESULTS) -> str:
    splits: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    for line in stored(path):
        splits.setdefault((line["dataset"], line["split"]), {})[line["regime"]] = line
    shown = [name for name in DATASETS if any(key[0] == name for key in splits)]
    count = {name: sum(key[0] == name for key in splits) for name in shown}
    lines = [
        f"| chosen by | {' | '.join(f'{name} ({count[name]})' for name in shown)} |",
        f"|---|{'---:|' * len(shown)}",
    ]
    by: dict[str, Callable[[dict[str, dict[str, Any]]], str]] = {
        rule: lambda lines, measure=measure: chosen(  # type: ignore[misc]
            {name: line["validation"] for name, line in lines.items()}, measure
        )
        for rule, measure in RULES.items()
    }
    by["best possible"] = lambda lines: max(lines, key=lambda name: lines[name]["test"])
    for regime in next(iter(splits.values()), {}):
        by[f"always {regime}"] = lambda lines, regime=regime: regime  # type: ignore[misc]
    for rule, choose in by.items():
        cells = []
        for name in shown:
            tests = [one[choose(one)]["test"] for key, one in splits.items() if key[0] == name]
            cells.append(f"{100 * np.mean(tests):.2f}")
        lines.append(f"| {rule} | {' | '.join(cells)} |")
    return "\n".join(lines)


def stored(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    parser.add_argument("--splits", nargs="+", type=int, default=range(TUNED_ON_SEED, 108))
    parser.add_argument("--table", action="store_true", help="train nothing")
    given = parser.parse_args()
    torch.set_num_threads(1)
    set_num_threads(1)
    known = {(line["dataset"], line["split"]) for line in stored(RESULTS)}
    for number, dataset in [] if given.table else product(given.splits, given.datasets):
        number = TUNED_ON if dataset in SHAPES else number
        if (dataset, number) in known:
            continue
        known.add((dataset, number))
        found = trained(dataset, number)
        with RESULTS.open("a") as stream:
            stream.writelines(json.dumps(line) + "\n" for line in found)
        print({line["regime"]: (line["test"], line["cpu"]) for line in found}, flush=True)
    print(table())


if __name__ == "__main__":
    main()
