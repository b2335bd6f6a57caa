"""Does Edgewise find missing citations of Cora, and tell who cites whom, better than PyG's GAE?

    python benchmarks/versus_links.py
    python benchmarks/versus_links.py --seeds 0 1 2
    python benchmarks/versus_links.py --table      # train nothing

Links are split 80/10/10 at random. Both models see the training citations alone, and are judged
on the same rows: test citations and 20 pairs without one for each. `direction`: how often the true
direction of a test citation gets the higher score (ties count one half). Edgewise has its default
settings. The autoencoder is `torch_geometric.nn.GAE` with two GCNConv (64, 32 wide), 200 epochs of
Adam at 0.01, the weights of the best validation AUC. A run is one line of
benchmarks/results/versus_links.jsonl. One thread.
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
from edgewise.training.fitting import fit_member
from edgewise.training.predictor import make_predictor
from edgewise.units.base import Problem, resolve

RESULTS = Path(__file__).parent / "results" / "versus_links.jsonl"
MODELS = ("edgewise", "gae")


class Encoder(nn.Module):
    """Two graph convolutions."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.first, self.second = GCNConv(features, 64), GCNConv(64, 32)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


def opened(seed: int) -> Problem:
    source = find_source(["cora"])
    unit, settings = resolve(source, "default", {"predict": "links", "seed": seed})
    return unit.open(source, settings).problem


def autoencoder(problem: Problem, pairs: Tensor, seed: int) -> np.ndarray:
    """Scores of pairs by PyG's graph autoencoder."""
    data = problem.data
    assert isinstance(data, LinkRows)
    torch.manual_seed(seed)
    known = data.graph.edge_index[:, data.carries]
    both = torch.cat([known, known.flip(0)], dim=1)
    model = GAE(Encoder(data.graph.num_features))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    rows = problem.split.validation
    truth, best, found = problem.truth[rows, 0].numpy(), 0.0, np.zeros(pairs.size(1))
    for _ in range(200):
        model.train()
        optimizer.zero_grad()
        z = model.encode(data.graph.x, both)
        model.recon_loss(z, known).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            z = model.encode(data.graph.x, both)
            score = roc_auc_score(truth, model.decode(z, data.pairs[:, rows]).numpy())
            if score > best:
                best, found = score, model.decode(z, pairs).numpy()
    return found


def ours(problem: Problem, pairs: Tensor) -> np.ndarray:
    data = problem.data
    assert isinstance(data, LinkRows)
    model = make_predictor(problem, (fit_member(problem).trainer.model,))
    count = pairs.size(1)
    asked = LinkRows(
        data.graph, data.link, pairs, torch.full((count,), -1), torch.zeros(count).bool(),
        data.carries, data.directed,
    )  # fmt: skip
    return model.predict(asked).mean[:, 0]


def run(model: str, seed: int) -> dict[str, Any]:
    problem = opened(seed)
    data, rows = problem.data, problem.split.test
    assert isinstance(data, LinkRows)
    truth = problem.truth[rows, 0].numpy()
    there = data.pairs[:, rows[torch.from_numpy(truth == 1)]]
    pairs = torch.cat([data.pairs[:, rows], there, there.flip(0)], dim=1)
    score = ours(problem, pairs) if model == "edgewise" else autoencoder(problem, pairs, seed)
    first, second = np.split(score[len(rows) :], 2)
    edges = {tuple(pair) for pair in data.graph.edge_index.T.tolist()}
    one_way = np.array([(b, a) not in edges for a, b in there.T.tolist()])
    right = (first > second) + 0.5 * (first == second)
    return {
        "model": model,
        "seed": seed,
        "roc_auc": float(roc_auc_score(truth, score[: len(rows)])),
        "direction": float(right[one_way].mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    known = {(one["model"], one["seed"]): one for one in map(json.loads, lines)}
    for seed in arguments.seeds:
        for model in arguments.models:
            if (model, seed) not in known and not arguments.table:
                known[model, seed] = run(model, seed)
                with RESULTS.open("a") as stream:
                    stream.write(json.dumps(known[model, seed]) + "\n")
    print("| model | runs | ROC AUC | direction |\n|---|---:|---:|---:|")
    for model in MODELS:
        found = [known[model, seed] for seed in arguments.seeds if (model, seed) in known]
        if found:
            cells = []
            for name in ("roc_auc", "direction"):
                values = [one[name] for one in found]
                cells.append(f"{np.mean(values):.3f} ± {np.std(values):.3f}")
            print(f"| {model} | {len(found)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
