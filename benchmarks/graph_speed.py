"""Are whole graphs trained and predicted faster than with PyTorch Geometric's loader and layers?

    python benchmarks/graph_speed.py

Mutagenicity and PROTEINS, one thread. `gated` is the default network of whole graphs and `conv` one
of EGNN(C) layers with GCN's normalisation, 64 wide for each channel; the rivals are the same
formulas at the same widths in PyG: its `DataLoader` and pooling, a `MessagePassing` for each
layer, torch's batch norm and AdamW, with the weights of ours, so that both give the same outputs,
which is checked first. `gin` is GIN (GINE where edges have columns) as PyG has it, as wide and
deep as `gated`: another formula, with less to compute. Batches of 64 graphs in training, of 256 in
prediction; making batches is part of the time on both sides. Sides take turns, so that a
busy moment of the machine meets both; medians of processor time. Writes
benchmarks/results/graph_speed.json.
"""

import copy
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MessagePassing, global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from versus_graphs import PygNetwork, problem_of

from edgewise.kernels.backend import set_num_threads
from edgewise.nn.network import ChannelNetwork
from edgewise.training import make_trainer
from edgewise.training.trainer import Trainer
from edgewise.units.base import Problem

BATCH, MANY, TURNS, CLIP = 64, 256, 3, 5.0
GATED: dict[str, Any] = {"hidden": 128, "channels": 32}
CONV: dict[str, Any] = {
    "layer": "conv", "normalize": "gcn", "hidden": 64, "depth": 4, "pooling": "mean+max+sum",
    "head": "mlp", "norm": "batch", "residual": True, "activation": "relu", "encoder": "linear",
    "optimizer": "adamw",
}  # fmt: skip
POOLS = (global_mean_pool, global_max_pool, global_add_pool)


class Gates(MessagePassing):
    """The messages of a gated layer; the edge state is a by-product."""

    def __init__(self) -> None:
        super().__init__(aggr="add")

    def forward(self, index: Tensor, a: Tensor, b: Tensor, v: Tensor, term: Tensor) -> Tensor:
        return self.propagate(index, a=a, b=b, v=v, term=term)

    def message(self, a_i: Tensor, b_j: Tensor, v_j: Tensor, term: Tensor) -> Tensor:
        self.state = a_i + b_j + term
        return v_j * self.state.sigmoid().repeat(1, v_j.size(1) // term.size(1))


class Weighted(MessagePassing):
    """Node features along each channel, side by side."""

    def __init__(self) -> None:
        super().__init__(aggr="add")

    def forward(self, index: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        return self.propagate(index, x=x, weight=weight)

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        return (weight.unsqueeze(2) * x_j.unsqueeze(1)).flatten(1)


class PygTwin(nn.Module):
    """A network of ours with its weights, computed by layers, pooling and batches of PyG."""

    def __init__(self, model: ChannelNetwork) -> None:
        super().__init__()
        self.net, self.gated = copy.deepcopy(model), model.settings.layer == "gated"
        self.messages = Gates() if self.gated else Weighted()

    def forward(self, data: Any) -> Tensor:
        net = self.net
        h = net.encoder(data.x)
        h = self._gated(h, data) if self.gated else self._convolved(h, data)
        return net.head(torch.cat([pool(h, data.batch) for pool in POOLS], dim=1))

    def _gated(self, h: Tensor, data: Any) -> Tensor:
        edges = self.net.edge_encoder(data.edge_attr)
        for block in self.net.blocks:
            layer = block.layer
            widths = [layer.channels] * 2 + [layer.out_channels] * 2
            a, b, v, own = linear(h, layer.weight, layer.bias).split(widths, dim=1)
            term = linear(edges, layer.edge_weight)
            out = own + self.messages(data.edge_index, a, b, v, term)
            h = h + block.norm(out).relu()
            h = h + block.feed_forward(h)
            if block.edge_norm is not None:
                edges = edges + block.edge_norm(self.messages.state).relu()
        return h

    def _convolved(self, h: Tensor, data: Any) -> Tensor:
        # Once for all layers, where GCNConv of PyG normalises in each.
        found = [
            gcn_norm(data.edge_index, column, len(h), add_self_loops=True)
            for column in data.edge_attr.t()
        ]
        index, weight = found[0][0], torch.stack([value for _, value in found], dim=1)
        for block in self.net.blocks:
            out = self.messages(index, h @ block.layer.weight, weight)
            out = out if block.layer.bias is None else out + block.layer.bias
            out = block.norm(out).relu()
            h = h + out if h.size(1) == out.size(1) else out
        return h


def as_pyg(problem: Problem, direction: str) -> list[Data]:
    """The same graphs, with the edges that messages of ours go along."""
    found = []
    for number, truth in enumerate(problem.truth):
        batch = problem.data.batch([number])  # type: ignore[attr-defined]
        edges = batch.edges.encoded(direction)
        attr = edges.edge_attr
        found.append(Data(x=batch.x, edge_index=edges.edge_index.long(), edge_attr=attr, y=truth))
    return found


def check_equal(trainer: Trainer, twin: nn.Module, graphs: list[Data]) -> None:
    rows = torch.arange(MANY)
    twin.eval()
    with torch.no_grad():
        (batch,) = DataLoader(graphs[:MANY], MANY)
        torch.testing.assert_close(trainer.outputs(rows), twin(batch), rtol=1e-3, atol=1e-3)


def rival_epoch(model: nn.Module, graphs: list[Data]) -> Callable[[], None]:
    optimizer = torch.optim.AdamW(model.parameters(), 0.001)
    loader = DataLoader(graphs, BATCH, shuffle=True)

    def run() -> None:
        model.train()
        for batch in loader:
            optimizer.zero_grad()
            cross_entropy(model(batch), batch.y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()

    return run


def rival_prediction(model: nn.Module, graphs: list[Data]) -> Callable[[], None]:
    @torch.no_grad()
    def run() -> None:
        model.eval()
        for batch in DataLoader(graphs, MANY):
            model(batch)

    return run


def timed(name: str) -> dict[str, dict[str, int]]:
    """Graphs a second of training and of prediction."""
    steps: dict[str, dict[str, Callable[[], None]]] = {"training": {}, "prediction": {}}
    for kind, settings in (("gated", GATED), ("conv", CONV)):
        problem = problem_of(name, 0, 0, **settings, clip=CLIP)
        trainer, rows = make_trainer(problem), torch.arange(len(problem.data))
        graphs, train = as_pyg(problem, trainer.model.direction), problem.split.train
        chosen = [graphs[i] for i in train]
        rivals = {f"pyg {kind}": PygTwin(trainer.model)}
        check_equal(trainer, rivals[f"pyg {kind}"], graphs)
        if kind == "gated":
            rivals["pyg gin"] = PygNetwork(problem, 0.0, width=GATED["hidden"])
        steps["training"][f"edgewise {kind}"] = lambda own=trainer: own.train_epoch(1)
        steps["prediction"][f"edgewise {kind}"] = lambda own=trainer, all=rows: own.outputs(all)
        for rival, model in rivals.items():
            steps["training"][rival] = rival_epoch(model, chosen)
            steps["prediction"][rival] = rival_prediction(model, graphs)
    counts = {"training": len(train), "prediction": len(rows)}
    found: dict[str, dict[str, int]] = {}
    for part, of_part in steps.items():
        times: dict[str, list[float]] = defaultdict(list)
        for _ in range(TURNS + 1):
            for which, run in of_part.items():
                start = time.process_time()
                run()
                times[which].append(time.process_time() - start)
        found[part] = {k: round(counts[part] / statistics.median(t[1:])) for k, t in times.items()}
    return found


def main() -> None:
    set_num_threads(1)
    results = {name: timed(name) for name in ("proteins", "mutagenicity")}
    print("| graphs a second | | ours | PyG, same formula | ratio | PyG GIN | ratio |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name, parts in results.items():
        for part, of in parts.items():
            for kind in ("gated", "conv"):
                own, twin, gin = of[f"edgewise {kind}"], of[f"pyg {kind}"], of["pyg gin"]
                print(
                    f"| {name}, {part} | {kind} | {own:,} | {twin:,} | {own / twin:.1f} | {gin:,} "
                    f"| {own / gin:.1f} |"
                )
    path = Path(__file__).parent / "results" / "graph_speed.json"
    path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
