"""Does Edgewise find missing citations of Cora, and tell who cites whom, better than PyG's GAE?

    python benchmarks/versus_links.py
    python benchmarks/versus_links.py --seeds 0 1 2
    python benchmarks/versus_links.py --table      # train nothing

Links are split 80/10/10 at random. All models see the training citations alone, and are judged
on the same rows: test citations and 20 pairs without one for each. `direction`: how often the true
direction of a test citation gets the higher score (ties count one half). `gae` is
`torch_geometric.nn.GAE` with two GCNConv, whose inner product cannot tell the direction; `gcn+mlp`
has a perceptron on the ordered pair in its place, and is trained with the pairs that ours is told
from. Both keep the epoch of the best validation AUC, of 200, and the best of six settings (learning
rate, width, dropout) on seed 100, which is not reported. Edgewise has its default settings. A run
is one line of benchmarks/results/versus_links.jsonl. One thread.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch_geometric.nn import GAE, GCNConv

from edgewise.data.sources import find_source
from edgewise.graphs.link_rows import LinkRows
from edgewise.kernels.backend import set_num_threads
from edgewise.tasks.link import link_ranks
from edgewise.training.fitting import fit_member
from edgewise.training.predictor import make_predictor
from edgewise.units.base import Problem, resolve

RESULTS = Path(__file__).parent / "results" / "versus_links.jsonl"
TUNED, EPOCHS = 100, 200  # the seed on which settings are chosen; epochs of a rival
_RIVALS = [
    {"learning_rate": rate, "width": width, "dropout": dropout}
    for rate, width, dropout in (
        (0.01, 32, 0.0), (0.003, 32, 0.0), (0.01, 128, 0.0),
        (0.01, 32, 0.5), (0.003, 128, 0.5), (0.01, 128, 0.5),
    )
]  # fmt: skip
TRIED: dict[str, list[dict[str, Any]]] = {"edgewise": [{}], "gae": _RIVALS, "gcn+mlp": _RIVALS}


class Encoder(nn.Module):
    """Two graph convolutions."""

    def __init__(self, features: int, width: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = GCNConv(features, 2 * width), GCNConv(2 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.dropout(self.first(self.dropout(x), edge_index).relu())
        return self.second(h, edge_index)


class PairDecoder(nn.Module):
    """A perceptron on the ordered pair of end states, in the place of their inner product."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2 * width, 2 * width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(2 * width, 1),
        )

    def forward(self, z: Tensor, pairs: Tensor, sigmoid: bool = True) -> Tensor:
        out = self.net(torch.cat([z[pairs[0]], z[pairs[1]]], dim=1))[:, 0]
        return out.sigmoid() if sigmoid else out


def opened(seed: int) -> Problem:
    source = find_source(["cora"])
    unit, settings = resolve(source, "default", {"predict": "links", "seed": seed})
    return unit.open(source, settings).problem


def autoencoder(
    name: str, problem: Problem, pairs: Tensor, seed: int, settings: dict[str, Any]
) -> tuple[float, np.ndarray]:
    """The best validation AUC of PyG's graph autoencoder, and its scores of pairs."""
    data = problem.data
    assert isinstance(data, LinkRows)
    torch.manual_seed(seed)
    known = data.graph.edge_index[:, data.carries]
    both = torch.cat([known, known.flip(0)], dim=1)
    width, dropout = settings["width"], settings["dropout"]
    decoder = None if name == "gae" else PairDecoder(width, dropout)
    model = GAE(Encoder(data.graph.num_features, width, dropout), decoder)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings["learning_rate"])
    rows = problem.split.validation
    truth, best, found = problem.truth[rows, 0].numpy(), 0.0, np.zeros(pairs.size(1))
    for _ in range(EPOCHS):
        model.train()
        optimizer.zero_grad()
        z = model.encode(data.graph.x, both)
        # Its own negatives are uniform pairs; the perceptron gets those that ours is trained with.
        others = None if name == "gae" else data.sampler.draw(known)
        model.recon_loss(z, known, others).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            z = model.encode(data.graph.x, both)
            score = roc_auc_score(truth, model.decode(z, data.pairs[:, rows]).numpy())
            if score > best:
                best, found = score, model.decode(z, pairs).numpy()
    return best, found


def ours(problem: Problem, pairs: Tensor) -> np.ndarray:
    """Scores of pairs by our network with its default settings."""
    data = problem.data
    assert isinstance(data, LinkRows)
    model = make_predictor(problem, (fit_member(problem).trainer.model,))
    count = pairs.size(1)
    asked = LinkRows(
        data.graph, data.link, pairs, torch.full((count,), -1), torch.zeros(count).bool(),
        data.carries, data.directed,
    )  # fmt: skip
    return model.predict(asked).mean[:, 0]


def run(model: str, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    problem = opened(seed)
    data, rows = problem.data, problem.split.test
    assert isinstance(data, LinkRows)
    truth = problem.truth[rows, 0].numpy()
    there = data.pairs[:, rows[torch.from_numpy(truth == 1)]]
    pairs = torch.cat([data.pairs[:, rows], there, there.flip(0)], dim=1)
    found: dict[str, Any] = {"model": model, "seed": seed, "settings": settings}
    if model == "edgewise":
        score = ours(problem, pairs)
    else:
        found["validation"], score = autoencoder(model, problem, pairs, seed, settings)
    first, second = np.split(score[len(rows) :], 2)
    edges = {tuple(pair) for pair in data.graph.edge_index.T.tolist()}
    one_way = np.array([(b, a) not in edges for a, b in there.T.tolist()])
    right = (first > second) + 0.5 * (first == second)
    found["roc_auc"] = float(roc_auc_score(truth, score[: len(rows)]))
    (ranks,) = link_ranks(score[: len(rows), None], truth[:, None])
    found["mrr"] = float((1 / ranks).mean())
    found["direction"] = float(right[one_way].mean())
    return found


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()]


def known(model: str, seed: int, settings: dict[str, Any], *, train: bool) -> dict[str, Any] | None:
    """The line of a run, trained where there is none yet."""
    key = {"model": model, "seed": seed, "settings": settings}
    for line in lines():
        if all(line[k] == v for k, v in key.items()):
            return line
    if not train:
        return None
    line = run(model, seed, settings)
    with RESULTS.open("a") as stream:
        stream.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)
    return line


def chosen(model: str, *, train: bool) -> dict[str, Any]:
    """The settings of the best validation AUC on a seed that is not reported."""
    found = [known(model, TUNED, settings, train=train) for settings in TRIED[model]]
    tried = [line for line in found if line is not None]
    best = max(tried, key=lambda line: line["validation"], default=None)
    return TRIED[model][0] if best is None else best["settings"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--models", nargs="+", default=list(TRIED), choices=list(TRIED))
    parser.add_argument("--table", action="store_true", help="train nothing")
    wanted = parser.parse_args()
    set_num_threads(1)
    train = not wanted.table
    rows = []
    for model in wanted.models:
        settings = chosen(model, train=train) if len(TRIED[model]) > 1 else TRIED[model][0]
        found = [known(model, seed, settings, train=train) for seed in wanted.seeds]
        done = [line for line in found if line is not None]
        cells = []
        for name in ("roc_auc", "mrr", "direction"):
            values = [line[name] for line in done]
            several = len(values) > 1
            cells.append(f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}" if several else "")
        rows.append(f"| {model} | {len(done)} | {' | '.join(cells)} |")
    print("| model | runs | ROC AUC | MRR | direction |\n|---|---:|---:|---:|---:|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
