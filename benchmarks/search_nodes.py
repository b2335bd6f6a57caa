"""Which networks belong into the portfolio for nodes? Each option on validation nodes alone.

    python benchmarks/search_nodes.py                            # every option, hours
    python benchmarks/search_nodes.py --datasets cora --regimes deep --options depth=2
    python benchmarks/search_nodes.py --table                    # train nothing

An option is a regime of the portfolio with some settings changed. It is trained to its end on
splits that no table reports: random 60/20/20 splits with seeds 100, 101, ... of Cora, CiteSeer,
PubMed and the synthetic graph, and the last split of Squirrel and Minesweeper, which
`versus_pyg.py` leaves out. `validation` is the score of the epoch that is kept: accuracy, or ROC
AUC of Minesweeper, in percent. A run is a line of benchmarks/results/search_nodes.jsonl with all
settings that differ from the defaults, so the script can be stopped and continued.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from versus_pyg import AUC, CITATIONS, SHAPES, TUNED_ON, UNDIRECTED, load

from edgewise.core.presets import PORTFOLIO, make_settings
from edgewise.core.settings import Settings
from edgewise.kernels.backend import set_num_threads
from edgewise.tasks.classification import Classification
from edgewise.tasks.multilabel import Multilabel
from edgewise.training import fit_member
from edgewise.units.node import node_problem

RESULTS = Path(__file__).parent / "results" / "search_nodes.jsonl"
DATASETS = (*CITATIONS, *SHAPES, "synthetic")
SEED = 100


def split_number(dataset: str, repeat: int) -> int:
    """Of a split that is not reported."""
    return TUNED_ON if dataset in SHAPES else SEED + repeat


def settings_of(dataset: str, seed: int, regime: str, changes: dict[str, Any]) -> Settings:
    implied = {"directed": False} if dataset in UNDIRECTED else {}
    start = make_settings("node", implied=implied, regime=regime, seed=seed)
    return start.changed(**changes)


def run(dataset: str, repeat: int, settings: Settings) -> dict[str, Any]:
    graph, split = load(dataset, split_number(dataset, repeat))
    assert graph.y is not None
    auc = dataset in AUC
    names = graph.class_names or tuple(map(str, range(int(graph.y.max()) + 1)))
    task = Multilabel(("label",)) if auc else Classification(("label",), names)
    truth = graph.y.float()[:, None] if auc else graph.y
    start = time.process_time()
    fitting = fit_member(node_problem(graph, task, truth, split, settings)[0])
    best = fitting.best
    assert best is not None
    return {
        "validation": round(best.validation_score, 5),
        "after": {
            str(rung): round(max(e.validation_score for e in fitting.history[:rung]), 5)
            for rung in (30, 90, 200)
        },
        "epoch": best.number,
        "epochs": len(fitting.history),
        "cpu": round(time.process_time() - start, 1),
    }


def parsed(option: str) -> dict[str, Any]:
    """``depth=2,norm=none`` as settings."""
    pairs = [pair.split("=") for pair in option.split(",") if pair]
    return {name: _value(text) for name, text in pairs}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def lines(path: Path = RESULTS) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def described(differing: dict[str, Any]) -> str:
    """The network in a few words."""
    s = Settings().changed(**differing)
    m, t = s.model, s.training
    words = [
        f"{m.layer}, {m.normalize.replace('_', ' ')}, {m.depth} x {m.hidden}, dropout {m.dropout}",
        "root weight" if m.root_weight else "",
        "linear encoder" if m.encoder == "linear" else "",
        f"{m.norm} norm" if m.norm != "none" else "",
        "residuals" if m.residual else "",
        "incident edges" if m.incident else "",
        f"feed-forward {m.feed_forward}" if m.feed_forward else "",
        f"{t.optimizer} {t.learning_rate}",
        f"by {t.monitor}, patience {t.patience}",
    ]
    return ", ".join(filter(None, words))


def table(found: list[dict[str, Any]]) -> str:
    """A row for each network, a column for each data set."""
    cells: dict[str, dict[str, list[float]]] = {}
    for line in found:
        row = cells.setdefault(described(line["settings"]), {})
        row.setdefault(line["dataset"], []).append(100 * line["validation"])
    shown = [d for d in DATASETS if any(d in row for row in cells.values())]
    rows = [f"| network | {' | '.join(shown)} |", f"|---|{'---:|' * len(shown)}"]
    for network, row in sorted(cells.items()):
        values = [f"{np.mean(row[d]):.1f}" if d in row else "" for d in shown]
        rows.append(f"| {network} | {' | '.join(values)} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    parser.add_argument("--regimes", nargs="+", default=tuple(PORTFOLIO["node"]))
    parser.add_argument("--options", nargs="+", default=[""], help="such as depth=2,norm=none")
    parser.add_argument("--repeats", nargs="+", type=int, default=[0])
    parser.add_argument("--table", action="store_true", help="train nothing")
    given = parser.parse_args()
    torch.set_num_threads(1)
    set_num_threads(1)
    known = {(line["dataset"], line["repeat"], json.dumps(line["settings"])) for line in lines()}
    wanted = [
        (dataset, repeat, regime, option)
        for repeat in given.repeats
        for option in given.options
        for regime in given.regimes
        for dataset in given.datasets
    ]
    for dataset, repeat, regime, option in [] if given.table else wanted:
        settings = settings_of(dataset, SEED + repeat, regime, parsed(option))
        differing = settings.differences()
        if (dataset, repeat, json.dumps(differing)) in known:
            continue
        line = {"dataset": dataset, "repeat": repeat, "regime": regime, "option": option}
        line |= {**run(dataset, repeat, settings), "settings": differing}
        with RESULTS.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        print({name: value for name, value in line.items() if name != "settings"}, flush=True)
    print(table(lines()))


if __name__ == "__main__":
    main()
