"""What tests train alone and as a team: ``python together.py STORE RANK`` is the other process."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist

from edgewise.core.presets import make_settings
from edgewise.core.team import ALONE, Team
from edgewise.data.chemistry import read_smiles
from edgewise.data.splits import given_split
from edgewise.graphs.share import Share
from edgewise.kernels.shared_memory import SharedMemory
from edgewise.nn.batch_norm import BatchNorm
from edgewise.tasks.classification import Classification
from edgewise.tasks.multilabel import Multilabel
from edgewise.tasks.regression import Regression
from edgewise.training.trainer import Trainer
from edgewise.units.graph import molecule_problem

WORKERS, STEPS = 2, 20
SMILES = (
    *("CCO", "CCN", "CCCl", "c1ccccc1", "CC(=O)O", "C", "C1CCCCC1", "c1ccncc1", "CC#N", "CBr"),
    *("COC", "CC=O", "CCS", "Cc1ccccc1", "Oc1ccccc1", "NC(=O)C", "C=C", "C#C", "FC(F)F", "CO"),
)
GATED = {"layer": "gated", "norm": "batch", "feed_forward": 2, "clip": 0.5, "encoder": "linear"}
PLAIN = {"layer": "conv", "norm": "none", "encoder": "none", "feed_forward": 0, "clip": 0.0}


def regression():
    truth = torch.stack([torch.linspace(-3, 5, 20), torch.linspace(9, 10, 20).flip(0)], dim=1)
    truth[::3, 0] = math.nan
    return Regression(("a", "b")), truth


def labels():
    truth = torch.tensor([[float("O" in s), float("c" in s)] for s in SMILES])
    truth[::4, 1] = truth[1::2, 0] = math.nan
    return Multilabel(("oxygen", "ring")), truth


def classes():
    truth = torch.tensor([0 if "c" in s else 1 if "O" in s else 2 for s in SMILES])
    return Classification(("x",), ("a", "b", "c")), truth


CASES = {
    "regression, batch norm, clipping": (regression, GATED),
    # Of three molecules one process has a single one, and computes it in another way. None is left
    # for a batch of its own, which running means would normalise: rounding shows in them.
    "batches of three, batch norm": (regression, {**GATED, "batch_size": 3, "rows": 15}),
    "labels with gaps, batch norm": (labels, {**GATED, "weighted": True}),
    "regression, no norm": (regression, {**GATED, "norm": "none"}),
    "labels with gaps": (labels, {**PLAIN, "weighted": True}),
    "weighted classes": (classes, {**PLAIN, "layer": "attention", "weighted": True}),
    # The last of its batches has one row, which both processes compute.
    "a last batch of one": (regression, {**PLAIN, "batch_size": 5}),
}


def trained(case, team=ALONE):
    """Losses, of training and validation, and weights after some steps in double precision."""
    made, settings = CASES[case]
    task, truth = made()
    settings = dict(settings)
    train = settings.pop("rows", 16)
    usual = {"hidden": 8, "batch_size": 8, "dropout": 0.0, "directed": False}
    resolved = make_settings("graph", **{**usual, **settings})
    rows = torch.arange(len(SMILES))
    split = given_split(rows[:train], rows[16:19], rows[:0])
    problem = molecule_problem(read_smiles(SMILES), task, truth, split, resolved)
    data = replace(
        problem.data, x=problem.data.x.double(), edge_attr=problem.data.edge_attr.double()
    )
    truth = truth.double() if truth.is_floating_point() else truth
    problem = replace(problem, data=data, truth=truth)
    torch.manual_seed(0)
    model = problem.unit.network(data.num_features, task.width, data.num_channels, resolved)
    trainer = Trainer(problem, model.double(), 0, team)
    if trainer.weight is not None:
        trainer.weight = trainer.weight.double()
    epochs = -(-STEPS // data.steps(len(split.train), resolved.training.batch_size))
    losses = [(trainer.train_epoch(epoch), *trainer.validate()) for epoch in range(1, epochs + 1)]
    return torch.tensor(losses), trainer.model.state_dict()


def normalized(team=ALONE):
    """What batch normalisation makes of some rows, its gradients, and what it keeps."""
    share = Share(team.rank, team.workers)
    torch.manual_seed(0)
    every, wanted = 3 * torch.randn(2, 7, 4, dtype=torch.float64) + 5
    places = share.of(torch.arange(7))
    x, norm = every[places].requires_grad_(), BatchNorm(4).double()
    torch.nn.init.normal_(norm.weight)
    norm.team = team
    out = norm(x)
    (out - wanted[places]).pow(3).sum().backward()
    summed = [team.summed(p.grad) for p in norm.parameters()]
    whole = [out, x.grad] if team.alone else [team.concatenated(t) for t in (out, x.grad)]
    return [*whole, *summed, *norm.buffers()]


def everything(store, rank):
    """All of it as one of the team's processes."""
    dist.init_process_group(
        "gloo", store=dist.FileStore(store, WORKERS), rank=rank, world_size=WORKERS
    )
    # By shared memory, and then by torch.distributed alone.
    shared = Team(rank, WORKERS, exchange=SharedMemory(Path(f"{store}.shared"), rank, WORKERS))
    first = {case: trained(case, shared) for case in CASES}, normalized(shared)
    team = Team(rank, WORKERS)
    some = list(CASES)[:2]
    found = {case: trained(case, team) for case in some}, normalized(team)
    dist.destroy_process_group()
    return [first, found]


if __name__ == "__main__":
    everything(sys.argv[1], int(sys.argv[2]))
