"""Is the gated layer faster than the same formula in PyTorch Geometric?

    python benchmarks/gated_speed.py

Forward and backward of one layer, 128 wide, with an edge state of 128 that is updated, on batches
of 64 molecules of Lipophilicity; gradients on nodes, edges and weights, as within a network. The
rival is the formula as a user of PyG writes it, a `MessagePassing` of five linear maps. CPU, one
thread; both take turns, so that a busy moment of the machine meets both; times are medians, and
only the ratios mean anything. `products` are the matrix products alone, which both have in common.
Fetches the data set if it is not at hand, and writes benchmarks/results/gated_speed.json.
"""

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from edgewise.data.chemistry import read_smiles
from edgewise.data.molecule_tables import read_named
from edgewise.data.molecules import learn_featurizer
from edgewise.data.packed import Batch, pack
from edgewise.kernels.backend import set_num_threads
from edgewise.nn.layers.gated import GatedChannelConv

WIDTH, BATCH, BATCHES, TURNS, AIM = 128, 64, 10, 7, 0.5


class PygGated(MessagePassing):
    """As a user writes it: the edge state is a by-product of the message."""

    def __init__(self, width: int, normalize: str):
        super().__init__(aggr="add")
        self.normalize = normalize
        self.target, self.source, self.message_of, self.own = (
            nn.Linear(width, width) for _ in range(4)
        )
        self.edge = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> tuple[Tensor, Tensor]:
        message = self.message_of(x)
        out = self.propagate(
            edge_index,
            a=self.target(x),
            b=self.source(x),
            v=message,
            c=self.edge(edge_attr),
        )
        if self.normalize == "row":
            out, total = out.chunk(2, dim=1)
            out = out / (total + 1e-6)
        return self.own(x) + out, self.state

    def message(self, a_i: Tensor, b_j: Tensor, v_j: Tensor, c: Tensor) -> Tensor:
        self.state = a_i + b_j + c
        gate = self.state.sigmoid()
        return torch.cat([gate * v_j, gate], dim=1) if self.normalize == "row" else gate * v_j


class Products(nn.Module):
    """The matrix products of the layer, without edges."""

    def __init__(self, width: int):
        super().__init__()
        self.nodes, self.edge = nn.Linear(width, 4 * width), nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> tuple[Tensor, Tensor]:
        return self.nodes(x), self.edge(edge_attr)


class Ours(GatedChannelConv):
    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> tuple[Tensor, Tensor]:
        return super().forward(x, edge_index, edge_attr, return_edges=True)


def step(layer: nn.Module, batch: Batch) -> Callable[[], None]:
    x = torch.randn(batch.x.size(0), WIDTH, requires_grad=True)
    edge_attr = torch.randn(batch.edge_attr.size(0), WIDTH, requires_grad=True)
    readout: list[Tensor] = []

    def run() -> None:
        out, state = layer(x, batch.edge_index, edge_attr)
        if not readout:
            readout.extend([torch.randn_like(out), torch.randn_like(state)])
        torch.autograd.backward([out, state], readout)
        for tensor in (x, edge_attr, *layer.parameters()):
            tensor.grad = None

    return run


def batches() -> list[Batch]:
    source = read_named("lipo")
    codes = read_smiles(source.smiles)
    molecules = pack(codes, learn_featurizer(codes, range(len(codes))))
    order = torch.randperm(len(molecules), generator=torch.Generator().manual_seed(0))
    return [molecules.batch(chosen) for chosen in order.split(BATCH)[:BATCHES]]


def main() -> None:
    set_num_threads(1)
    torch.manual_seed(0)
    layers = {
        "ours, none": Ours(WIDTH, WIDTH, WIDTH, "none"),
        "PyG, none": PygGated(WIDTH, "none"),
        "ours, row": Ours(WIDTH, WIDTH, WIDTH, "row"),
        "PyG, row": PygGated(WIDTH, "row"),
        "ours, symmetric": Ours(WIDTH, WIDTH, WIDTH, "symmetric"),
        "ours, doubly stochastic": Ours(WIDTH, WIDTH, WIDTH, "doubly_stochastic"),
        "products": Products(WIDTH),
    }
    steps = {name: [step(layer, b) for b in batches()] for name, layer in layers.items()}
    times: dict[str, list[float]] = {name: [] for name in layers}
    for turn in range(TURNS + 1):
        for place in range(BATCHES):
            for name, runs in steps.items():
                start = time.perf_counter()
                runs[place]()
                if turn:
                    times[name].append(1e3 * (time.perf_counter() - start))
    ms = {name: round(statistics.median(values), 3) for name, values in times.items()}
    ratios = {n: round(ms[f"ours, {n}"] / ms[f"PyG, {n}"], 3) for n in ("none", "row")}
    for name, value in ms.items():
        print(f"| {name} | {value} ms |")
    for name, ratio in ratios.items():
        print(f"{name}: ours takes {ratio:.2f} of PyG's time (aim {AIM})")
    result = {"width": WIDTH, "molecules": BATCH, "ms": ms, "ratios": ratios, "aim": AIM}
    path = Path(__file__).parent / "results" / "gated_speed.json"
    path.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
