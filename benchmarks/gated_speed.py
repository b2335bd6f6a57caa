"""Is the gated layer faster than the same formula in PyTorch Geometric?

    python benchmarks/gated_speed.py

Forward and backward of one layer, 128 wide, with an edge state of 128 that is updated, on batches
of 64 molecules of Lipophilicity; gradients on nodes, edges and weights, as within a network. The
rival is the formula as a user of PyG writes it, a `MessagePassing` of five linear maps. Both spend
most of their time in the same matrix products, which are BLAS's; `messages` is what is left without
them: gather, gate, sum, normalise, and `matrix products` is those of the layer alone, which no
layer of this formula can do without. `network` is the default network, which computes equal nodes
of a batch once, against the same network computing each node. One thread, freed memory is kept for
both as in our training. All take turns, so that a busy moment of the machine meets each; in a turn
a step is repeated as in training, and the first ones, which find the caches full of something else,
count for `cold` alone. Times are medians of processor time, and only the ratios mean anything.
Fetches the data set if it is not at hand, and writes benchmarks/results/gated_speed.json.
"""

import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from edgewise.core.declarations import ModelSettings
from edgewise.core.presets import make_settings
from edgewise.data.chemistry import read_smiles
from edgewise.data.featurizers import PropertiesFeaturizer, pack
from edgewise.data.molecule_tables import read_named
from edgewise.graphs.batch import Batch
from edgewise.kernels.backend import set_num_threads
from edgewise.kernels.colours import refine
from edgewise.kernels.gated import NORMALIZATIONS, gated_sum
from edgewise.kernels.memory import reuse_freed_memory
from edgewise.nn.layers.gated import GatedChannelConv
from edgewise.nn.network import ChannelNetwork
from edgewise.nn.readouts import GraphReadout

WIDTH, BATCH, BATCHES, TURNS, AIM = 128, 64, 4, 5, 0.5
REPEATS, COLD = 10, 2  # steps of a turn, and how many of them are not counted
RIVALS, FEW = ("none", "row"), 32


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
        parts = self.target(x), self.source(x), self.message_of(x), self.own(x)
        return self.messages(edge_index, *parts, self.edge(edge_attr))

    def messages(
        self, edge_index: Tensor, a: Tensor, b: Tensor, v: Tensor, u: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor]:
        out = self.propagate(edge_index, a=a, b=b, v=v, c=c)
        if self.normalize == "row":
            out, total = out.chunk(2, dim=1)
            out = out / (total + 1e-6)
        return u + out, self.state

    def message(self, a_i: Tensor, b_j: Tensor, v_j: Tensor, c: Tensor) -> Tensor:
        self.state = a_i + b_j + c
        gate = self.state.sigmoid()
        return torch.cat([gate * v_j, gate], dim=1) if self.normalize == "row" else gate * v_j


Inputs = list[Tensor]
Function = Callable[..., tuple[Tensor, Tensor]]


def layer_of(
    layer: nn.Module, batch: Batch, edge_dim: int = WIDTH, **options: bool
) -> Callable[[], None]:
    """A step through the whole layer."""
    x, edge_attr = leaf(batch.x.size(0), WIDTH), leaf(batch.edge_attr.size(0), edge_dim)

    def run() -> tuple[Tensor, Tensor]:
        return layer(x, batch.edge_index, edge_attr, **options)

    return step(run, [x, edge_attr, *layer.parameters()])


def pyg_messages(layer: PygGated, batch: Batch) -> Callable[[], None]:
    parts = [leaf(batch.x.size(0), WIDTH) for _ in range(4)]
    parts.append(leaf(batch.edge_attr.size(0), WIDTH))
    return step(lambda: layer.messages(batch.edge_index, *parts), parts)


def our_messages(layer: GatedChannelConv, batch: Batch) -> Callable[[], None]:
    nodes, term = leaf(batch.x.size(0), 4 * WIDTH), leaf(batch.edge_attr.size(0), WIDTH)

    def run() -> tuple[Tensor, Tensor]:
        edges = layer.incidence(batch.edge_index, len(nodes))
        return gated_sum(edges, nodes, term, WIDTH, layer.normalize, keep_state=True)

    return step(run, [nodes, term])


def leaf(*shape: int) -> Tensor:
    return torch.randn(*shape, requires_grad=True)


def step(run: Function, leaves: Inputs) -> Callable[[], None]:
    readout = [torch.randn_like(tensor) for tensor in run()]

    def forward_and_backward() -> None:
        torch.autograd.grad(run(), leaves, readout)

    return forward_and_backward


def batches() -> list[Batch]:
    source = read_named("lipo")
    codes = read_smiles(source.smiles)
    featurizer = PropertiesFeaturizer.learn(codes, np.arange(len(codes)), ModelSettings())
    molecules = pack(codes, featurizer)
    order = torch.randperm(len(molecules), generator=torch.Generator().manual_seed(0))
    return [molecules.batch(chosen) for chosen in order.split(BATCH)[:BATCHES]]


def contenders(normalize: str, batch: Batch) -> dict[str, Callable[[], None]]:
    ours = GatedChannelConv(WIDTH, WIDTH, WIDTH, normalize)
    steps = {
        f"ours, {normalize}, layer": layer_of(ours, batch, return_edges=True),
        f"ours, {normalize}, messages": our_messages(ours, batch),
    }
    if normalize in RIVALS:
        rival = PygGated(WIDTH, normalize)
        steps[f"PyG, {normalize}, layer"] = layer_of(rival, batch)
        steps[f"PyG, {normalize}, messages"] = pyg_messages(rival, batch)
    return steps


def few_channels(batch: Batch) -> Callable[[], None]:
    """Another network: each channel is shared by several columns, and the edge state is narrow."""
    layer = GatedChannelConv(WIDTH, WIDTH, FEW, channels=FEW)
    return layer_of(layer, batch, edge_dim=FEW, return_edges=True)


def products(batch: Batch) -> Callable[[], None]:
    """The matrix products of the layer, forward and backward, and nothing else."""
    pairs = [
        (torch.randn(rows, WIDTH), torch.randn(rows, out), torch.randn(out, WIDTH))
        for rows, out in ((batch.x.size(0), 4 * WIDTH), (batch.edge_attr.size(0), WIDTH))
    ]

    def run() -> None:
        for x, grad, weight in pairs:
            _ = x @ weight.t(), grad @ weight, grad.t() @ x

    return run


def networks(batch: Batch) -> dict[str, Callable[[], None]]:
    """A step of the default network as it is, and computing each node for itself."""

    class OfEachNode(ChannelNetwork):
        def _shared(self, batch: Batch) -> None:
            return None

    settings = make_settings("graph", directed=False).model
    steps = {}
    for name, kind in (("network", ChannelNetwork), ("network of each node", OfEachNode)):
        readout = GraphReadout(settings.pooling)
        widths = batch.x.size(1), 1, batch.edge_attr.size(1)
        model = kind(*widths, settings, readout=readout, direction="as_given")
        steps[name] = step(lambda model=model: [model(batch)], list(model.parameters()))
    return steps


def compared(ms: dict[str, float]) -> dict[str, float]:
    """Ours by PyG's, of the layer and its messages."""
    return {
        f"{name}, {part}": round(ms[f"ours, {name}, {part}"] / ms[f"PyG, {name}, {part}"], 3)
        for name in RIVALS
        for part in ("layer", "messages")
    }


def distinct(some: list[Batch]) -> list[float]:
    """The share of atoms that differ before the first layer and after each, mean of the batches."""
    depth = make_settings("graph").model.depth
    shares = []
    for batch in some:
        found = refine(batch.x, batch.edge_index, batch.edge_attr, depth)
        sizes = [len(found.first_node), *(len(level.parent) for level in found.levels)]
        shares.append(np.array(sizes) / len(batch.x))
    return [round(share, 3) for share in np.mean(shares, axis=0).tolist()]


def main() -> None:
    set_num_threads(1)
    reuse_freed_memory()
    torch.manual_seed(0)
    times: dict[str, list[float]] = defaultdict(list)
    cold: dict[str, list[float]] = defaultdict(list)
    some = batches()
    for batch in some:
        steps = {n: run for name in NORMALIZATIONS for n, run in contenders(name, batch).items()}
        steps[f"ours, none, layer of {FEW} channels"] = few_channels(batch)
        steps |= {"matrix products": products(batch), **networks(batch)}
        for turn in range(TURNS + 1):
            for name, run in steps.items():
                for repeat in range(REPEATS):
                    start = time.process_time()
                    run()
                    took = 1e3 * (time.process_time() - start)
                    if turn and (repeat == 0 or repeat >= COLD):
                        (times if repeat else cold)[name].append(took)
    ms = {name: round(statistics.median(values), 3) for name, values in times.items()}
    first_ms = {name: round(statistics.median(values), 3) for name, values in cold.items()}
    ratios, cold_ratios = compared(ms), compared(first_ms)
    once = round(ms["network"] / ms["network of each node"], 3)
    bound = round(ms["matrix products"] / ms["PyG, none, layer"], 3)
    for name, value in ms.items():
        print(f"| {name} | {value} ms |")
    for name, ratio in ratios.items():
        print(f"{name}: {ratio:.2f} of PyG's time (aim {AIM}), {cold_ratios[name]:.2f} when cold")
    shares = distinct(some)
    print(f"atoms of a batch that differ before the first layer, and after each: {shares}")
    print(f"the matrix products alone take {bound:.2f} of the time of PyG's layer")
    print(f"equal nodes once: {once:.2f} of the time of the network that computes each node")
    result = {
        **{"width": WIDTH, "molecules": BATCH, "ms": ms, "ratios": ratios, "aim": AIM},
        **{"ratios when cold": cold_ratios},
        **{"matrix_products_of_pyg": bound, "network_of_each_node": once, "distinct": shares},
    }
    path = Path(__file__).parent / "results" / "gated_speed.json"
    path.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
