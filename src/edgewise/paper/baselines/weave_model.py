"""The network of Weave, in which atoms and pairs of atoms inform each other."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import batch_norm, relu

from edgewise.core.errors import EdgewiseError
from edgewise.graphs.batch import Batch
from edgewise.nn.network import Network

# Means and standard deviations of the histogram's bins: they cut a normal distribution into
# eleven parts, hence the batch normalisation before it.
BINS = (
    *((-1.645, 0.283), (-1.080, 0.170), (-0.739, 0.134), (-0.468, 0.118), (-0.228, 0.114)),
    (0.0, 0.114),
    *((0.228, 0.114), (0.468, 0.118), (0.739, 0.134), (1.080, 0.170), (1.645, 0.283)),
)
POOLINGS = ("gaussian", "sum")


class WeaveModel(Network):
    r"""Molecular graph convolutions of `Kearnes et al. (2016) <https://arxiv.org/abs/1603.00856>`_.

    Weave modules, a layer of tanh units per atom with batch normalisation, pooling by
    :class:`GaussianHistogram` and one linear layer. The default widths are those of `MoleculeNet
    <https://arxiv.org/abs/1703.00564>`_.

    Args:
        atom_features: Numbers of an atom.
        pair_features: Numbers of a pair of atoms.
        outputs: Numbers to predict for a molecule.
        depth: Weave modules.
        hidden: Width of every part of a module.
        graph_features: Width of an atom before pooling, and of a molecule after it.
        pooling: ``"gaussian"``, or ``"sum"`` of the atoms.
    """

    def __init__(
        self,
        atom_features: int,
        pair_features: int,
        outputs: int,
        *,
        depth: int = 2,
        hidden: int = 50,
        graph_features: int = 128,
        pooling: str = "gaussian",
    ) -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise EdgewiseError(
                f"pooling={pooling!r} is not known; choose one of {', '.join(POOLINGS)}"
            )
        widths = [(atom_features, pair_features), *[(hidden, hidden)] * (depth - 1)]
        self.weaving = nn.ModuleList(WeaveModule(*pair, hidden) for pair in widths[:-1])
        # Nobody reads the pairs after the last module, so it leaves them alone.
        self.last = WeaveModule(*widths[-1], hidden, updates_pairs=False)
        self.widen = _linear(hidden, graph_features)
        self.norm = AtomNorm(graph_features, affine=False)
        self.histogram = GaussianHistogram(graph_features) if pooling == "gaussian" else None
        self.head = _linear(graph_features, outputs)

    def forward(self, batch: Batch) -> Float[Tensor, "molecules outputs"]:
        """The outputs of molecules whose edges are pairs from :func:`pack_pairs`."""
        return self.head(self.represent(batch))

    def represent(self, batch: Batch) -> Float[Tensor, "molecules width"]:
        x, ends, pairs = batch.x, batch.edge_index, batch.edge_attr
        for module in self.weaving:
            x, pairs = module(x, ends, pairs)
        x, _ = self.last(x, ends, pairs)
        x = self.norm(self.widen(x).tanh())
        graph, count = batch.graph_of_node, batch.num_graphs
        if self.histogram is not None:
            return self.histogram(x, graph, count)
        return _summed(x, graph, count)


class WeaveModule(nn.Module):
    r"""New atoms from atoms and pairs, and new pairs likewise.

    .. math::
        a_i' &= \rho\big(W_A [\rho(W_{AA} a_i), \textstyle\sum_j \rho(W_{PA} p_{ij})]\big) \\
        p_{ij}' &= \rho\big(W_P [\rho(W_{AP} [a_i, a_j]) + \rho(W_{AP} [a_j, a_i]),
                   \rho(W_{PP} p_{ij})]\big)

    with :math:`\rho` the ReLU, biases not shown. Pairs have no direction: :math:`p_{ij} = p_{ji}`
    stays true, which is why each is there once.
    """

    def __init__(
        self, atom_features: int, pair_features: int, hidden: int, *, updates_pairs: bool = True
    ) -> None:
        super().__init__()
        self.updates_pairs = updates_pairs
        self.atom_to_atom = _linear(atom_features, hidden)
        self.pair_to_atom = _linear(pair_features, hidden)
        self.new_atom = _linear(2 * hidden, hidden)
        if updates_pairs:
            self.atoms_to_pair = _linear(2 * atom_features, hidden)
            self.pair_to_pair = _linear(pair_features, hidden)
            self.new_pair = _linear(2 * hidden, hidden)

    def forward(
        self,
        x: Float[Tensor, "atoms features"],
        ends: Int[Tensor, "2 pairs"],
        pairs: Float[Tensor, "pairs pair_features"],
    ) -> tuple[Float[Tensor, "atoms hidden"], Float[Tensor, "pairs width"]]:
        gathered = both_ends_sum(relu(self.pair_to_atom(pairs)), ends, len(x))
        atoms = relu(self.new_atom(torch.cat([relu(self.atom_to_atom(x)), gathered], dim=1)))
        if not self.updates_pairs:
            return atoms, pairs
        along = torch.cat([self._of_ends(x, ends), relu(self.pair_to_pair(pairs))], dim=1)
        return atoms, relu(self.new_pair(along))

    def _of_ends(self, x: Tensor, ends: Tensor) -> Tensor:
        # Each half of the matrix multiplies one of the two ends. An atom is in many pairs,
        # so both products are taken per atom, not per pair.
        left, right = self.atoms_to_pair.weight.chunk(2, dim=1)
        as_first, as_second = x @ left.T + self.atoms_to_pair.bias, x @ right.T
        one, other = ends
        there = as_first.index_select(0, one) + as_second.index_select(0, other)
        back = as_first.index_select(0, other) + as_second.index_select(0, one)
        return relu(there) + relu(back)


class GaussianHistogram(nn.Module):
    """Pooling that keeps the distribution of every feature over the atoms, not just its sum.

    Each feature of each atom is shared out to eleven bins; the shares are summed over the atoms
    of a molecule and brought back to the original width by one layer of tanh units.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.narrow = _linear(width * len(BINS), width)

    def forward(
        self, x: Float[Tensor, "atoms width"], molecule: Int[Tensor, " atoms"], num_molecules: int
    ) -> Float[Tensor, "molecules width"]:
        return self.narrow(_summed(memberships(x).flatten(1), molecule, num_molecules)).tanh()


def memberships(x: Float[Tensor, "atoms width"]) -> Float[Tensor, "atoms bins width"]:
    """The share of each bin in each number: Gaussians of height 1, divided by their sum."""
    mean, deviation = torch.tensor(BINS, dtype=x.dtype).T.unsqueeze(-1)
    # As a softmax it is defined even where all the Gaussians underflow.
    return ((x.unsqueeze(1) - mean) / (deviation * math.sqrt(2))).square().neg().softmax(dim=1)


class AtomNorm(nn.BatchNorm1d):
    """Batch normalisation that takes a lone atom by the running statistics; it has no variance."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training and len(x) == 1:
            return batch_norm(x, self.running_mean, self.running_var, eps=self.eps)
        return super().forward(x)


def both_ends_sum(
    message: Float[Tensor, "pairs width"], ends: Int[Tensor, "2 pairs"], num_atoms: int
) -> Float[Tensor, "atoms width"]:
    """What the pairs of each atom say, summed; the pair of an atom with itself counts once."""
    one, other = ends
    with_others = message * (one != other).unsqueeze(1)
    return _summed(message, one, num_atoms) + _summed(with_others, other, num_atoms)


def _summed(x: Tensor, group: Tensor, groups: int) -> Tensor:
    return x.new_zeros(groups, x.size(1)).index_add(0, group, x)


def _linear(width: int, out: int) -> nn.Linear:
    """Initialised as the reference implementation does it."""
    layer = nn.Linear(width, out)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
