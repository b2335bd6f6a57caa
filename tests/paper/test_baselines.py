"""The baselines learn from training rows alone, and Weave equals what its paper writes down."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from rdkit import Chem
from torch.testing import assert_close

from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import make_settings
from edgewise.data.chemistry import read_smiles
from edgewise.data.splits import given_split
from edgewise.paper.baselines import forest
from edgewise.paper.baselines.forest import fingerprints, fit_forest
from edgewise.paper.baselines.pair_features import PAIR_FEATURES, pack_pairs
from edgewise.paper.baselines.weave import WEAVE, make_weave_trainer
from edgewise.paper.baselines.weave_model import (
    BINS,
    AtomNorm,
    GaussianHistogram,
    WeaveModel,
    WeaveModule,
    memberships,
)
from edgewise.tasks.classification import Classification
from edgewise.tasks.multilabel import Multilabel
from edgewise.tasks.regression import Regression
from edgewise.training import Fitting
from edgewise.units.graph import molecule_problem

pytestmark = pytest.mark.slow

SMILES = (
    *("CCO", "CCN", "CCCl", "c1ccccc1", "CC(=O)O", "CCCC", "C1CCCCC1", "c1ccncc1", "CC#N", "CBr"),
    *("COC", "CC=O", "CCS", "Cc1ccccc1", "Oc1ccccc1", "NC(=O)C", "C=C", "C#C", "FC(F)F", "CO"),
)
# One atom; two fragments, one of them an atom; fused rings; a chain longer than seven bonds;
# a stereocentre; rings that meet in one atom; a metal.
ODD = (
    *("C", "[Na+].CC(=O)[O-]", "c1ccc2ccccc2c1", "CCCCCCCCCC#N", "C[C@H](N)C(=O)O"),
    *("C1CCC2(CC1)OCCO2", "CC[Hg]CC", "OCC1CC1c1cc[nH]c1"),
)
REGRESSION = Regression(("a",))
LABELS = Multilabel(("toxic", "bitter"))


@pytest.fixture(autouse=True)
def _few_trees_and_one_thread(monkeypatch):
    monkeypatch.setattr(forest, "TREES", 10)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def problem_of(task, truth, train=range(15), validation=(), test=range(15, 20), **settings):
    implied = {"directed": False}
    wanted = make_settings("graph", "paper", implied=implied, **{**WEAVE, **settings})
    rows = given_split(list(train), list(validation), list(test))
    return molecule_problem(read_smiles(SMILES), task, truth, rows, wanted)


def labels():
    truth = torch.tensor([[i % 2, i % 3 == 0] for i in range(20)], dtype=torch.float32)
    truth[3:7, 0] = math.nan
    return truth


def weave(pairs, outputs=3, **options):
    """A network whose batch statistics are not the initial ones, ready to be evaluated."""
    model = WeaveModel(pairs.x.size(1), pairs.edge_attr.size(1), outputs, **options)
    model.norm.running_mean.normal_(std=0.1)
    model.norm.running_var.uniform_(0.5, 1.5)
    return model.eval()


def outputs_of(model, pairs, rows):
    return model(pairs.batch(rows))


def test_fingerprints_tell_what_lies_within_two_bonds():
    ethanol, backwards, propanol = fingerprints(["CCO", "OCC", "CCCO"])
    assert (ethanol == backwards).all()
    assert (ethanol != propanol).any()
    assert set(np.unique(ethanol)) == {0.0, 1.0}
    # Chains differ in their ends; three bonds from those, a carbon looks like any other.
    assert (fingerprints(["C" * 12]) == fingerprints(["C" * 13])).all()


@pytest.mark.parametrize("task", [REGRESSION, LABELS], ids=lambda task: task.name)
def test_a_forest_learns_from_training_rows_alone(task):
    truth = labels()[:, : task.width]
    first = fit_forest(problem_of(task, truth), seed=0)
    changed = truth.clone()
    changed[15:] = 1 - changed[15:]
    assert (fit_forest(problem_of(task, changed), seed=0) == first).all()
    changed[:15] = 1 - changed[:15]
    assert (fit_forest(problem_of(task, changed), seed=0) != first).any()


def test_a_forest_leaves_out_unknown_labels():
    with_gaps = fit_forest(problem_of(LABELS, labels()), seed=0)
    rows = [0, 1, 2, *range(7, 15)]
    without = fit_forest(problem_of(LABELS, labels(), train=rows), seed=0)
    assert (with_gaps[:, 0] == without[:, 0]).all()
    assert (with_gaps[:, 1] != without[:, 1]).any()


def test_a_seed_repeats_a_forest_on_any_number_of_processors():
    problem = problem_of(LABELS, labels())
    first = fit_forest(problem, seed=3)
    assert (fit_forest(problem, seed=3, jobs=2) == first).all()
    assert (fit_forest(problem, seed=4) != first).any()


def test_a_forest_gives_probabilities_of_every_class_even_of_one_it_never_saw():
    task = Classification(("kind",), ("ring", "chain", "unseen"))
    truth = torch.tensor(["1" not in text for text in SMILES]).long()
    truth[0], truth[19] = -1, 2
    probability = fit_forest(problem_of(task, truth, train=range(1, 15)), seed=0)
    assert probability.shape == (20, 3)
    assert_close(probability.sum(axis=1), np.ones(20))
    assert (probability[:, 2] == 0).all()
    assert (probability[1:15].argmax(axis=1) == truth[1:15].numpy()).all()


def test_a_label_with_one_value_in_training_has_probability_0_or_1():
    truth = labels()
    truth[:15, 0], truth[:15, 1] = 0, 1
    predicted = fit_forest(problem_of(LABELS, truth), seed=0)
    assert (predicted == [0, 1]).all()


def test_a_label_that_no_training_row_knows_is_named():
    truth = labels()
    truth[:15, 1] = math.nan
    with pytest.raises(EdgewiseError, match=r"'bitter'.*another split"):
        fit_forest(problem_of(LABELS, truth), seed=0)


def slow_pair(molecule, i, j):
    """The 14 features of a pair, by walking and looking it up."""
    bond = molecule.GetBondBetweenAtoms(i, j) if i != j else None
    kind = "" if bond is None else str(bond.GetBondType())
    row = [float(kind == name) for name in ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")]
    row += [float(bond is not None and bond.GetIsConjugated())]
    row += [float(bond is not None and bond.IsInRing())]
    rings = [set(ring) for ring in Chem.GetSymmSSSR(molecule)]
    row += [float(i != j and any({i, j} <= ring for ring in rings))]
    reached, frontier, distance = {i}, {i}, 0
    while frontier and j not in frontier:
        neighbours = {
            atom.GetIdx() for k in frontier for atom in molecule.GetAtomWithIdx(k).GetNeighbors()
        }
        frontier = neighbours - reached
        reached |= frontier
        distance += 1
    return row + [float(j in frontier and distance == d) for d in range(1, 8)]


@pytest.mark.parametrize("smiles", [*ODD, "c1ccc(cc1)C#N"])
def test_pair_features_equal_a_slow_walk(smiles):
    pairs, molecule = pack_pairs([smiles]), Chem.MolFromSmiles(smiles)
    ends = [(i, j) for i in range(molecule.GetNumAtoms()) for j in range(i, molecule.GetNumAtoms())]
    assert list(map(tuple, pairs.edge_index.T.tolist())) == ends
    wanted = torch.tensor([slow_pair(molecule, i, j) for i, j in ends])
    assert pairs.edge_attr.shape == (len(ends), len(PAIR_FEATURES))
    assert torch.equal(pairs.edge_attr, wanted)


def test_an_atom_knows_the_sizes_of_its_rings():
    spiro = pack_pairs(["C1CCC2(CC1)OCCO2"])
    assert spiro.x[3, -6:].tolist() == [0, 0, 1, 1, 0, 0]
    assert spiro.x[0, -6:].tolist() == [0, 0, 0, 1, 0, 0]


def test_what_is_no_molecule_is_not_packed():
    with pytest.raises(EdgewiseError, match=r"row\(s\) \[1\] cannot be read"):
        pack_pairs(["C", "C(C"])


def slow_module(module, x, pair):
    """The equations of the module for one molecule, one ordered pair after the other."""

    def rho(layer, *parts):
        return layer(torch.cat(parts)).relu()

    atoms, pairs = [], {}
    for i in range(len(x)):
        said = sum(rho(module.pair_to_atom, pair[i, j]) for j in range(len(x)))
        atoms.append(rho(module.new_atom, rho(module.atom_to_atom, x[i]), said))
        for j in range(len(x)):
            both = rho(module.atoms_to_pair, x[i], x[j]) + rho(module.atoms_to_pair, x[j], x[i])
            pairs[i, j] = rho(module.new_pair, both, rho(module.pair_to_pair, pair[i, j]))
    return torch.stack(atoms), pairs


@pytest.fixture
def random_pairs():
    ends = torch.triu_indices(5, 5)
    features = torch.randn(ends.size(1), 4, dtype=torch.float64)
    return torch.randn(5, 6, dtype=torch.float64), ends, features


def test_a_module_equals_its_equations(random_pairs):
    x, ends, features = random_pairs
    module = WeaveModule(6, 4, 7).double()
    for p in module.parameters():
        torch.nn.init.normal_(p)
    pair = {(i, j): row for (i, j), row in zip(ends.T.tolist(), features, strict=True)}
    pair |= {(j, i): row for (i, j), row in pair.items()}
    atoms, pairs = module(x, ends, features)
    wanted_atoms, wanted_pairs = slow_module(module, x, pair)
    assert_close(atoms, wanted_atoms)
    assert_close(pairs, torch.stack([wanted_pairs[i, j] for i, j in ends.T.tolist()]))
    assert_close(pairs, torch.stack([wanted_pairs[j, i] for i, j in ends.T.tolist()]))


def test_a_pair_is_the_same_from_both_ends(random_pairs):
    x, ends, features = random_pairs
    module = WeaveModule(6, 4, 7).double()
    there, back = module(x, ends, features), module(x, ends.flip(0), features)
    assert_close(there, back)


@pytest.mark.parametrize("pooling", ["gaussian", "sum"])
def test_the_order_of_atoms_does_not_matter(pooling):
    pairs = pack_pairs(["CC(=O)Oc1ccccc1C(=O)O.[Na+]"])
    model = weave(pairs, pooling=pooling)
    molecule = Chem.MolFromSmiles(pairs.ids[0])
    expected = outputs_of(model, pairs, [0])
    for first in range(molecule.GetNumAtoms()):
        other = Chem.MolToSmiles(molecule, rootedAtAtom=first, canonical=False)
        assert_close(outputs_of(model, pack_pairs([other]), [0]), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("pooling", ["gaussian", "sum"])
def test_a_batch_gives_what_molecules_give_one_by_one(pooling):
    pairs = pack_pairs((*SMILES, *ODD))
    model, rows = weave(pairs, pooling=pooling), [27, 3, 20, 21, 0, 25, 3]
    alone = torch.cat([outputs_of(model, pairs, [row]) for row in rows])
    assert alone.isfinite().all()
    assert_close(outputs_of(model, pairs, rows), alone, atol=1e-5, rtol=1e-5)


def test_an_unknown_pooling_is_named():
    with pytest.raises(EdgewiseError, match="pooling='max' is not known"):
        WeaveModel(4, 14, 1, pooling="max")


def test_memberships_sum_to_one_for_each_atom_and_feature():
    x = torch.cat([torch.randn(50, 8), torch.full((1, 8), 30.0), torch.full((1, 8), -1e4)])
    shares = memberships(x)
    assert shares.shape == (52, len(BINS), 8)
    assert_close(shares.sum(dim=1), torch.ones(52, 8))


def test_memberships_are_gaussians_divided_by_their_sum():
    x = torch.linspace(-2, 2, 21, dtype=torch.float64).unsqueeze(1)
    height = [torch.exp(-((x - mean) ** 2) / (2 * deviation**2)) for mean, deviation in BINS]
    assert_close(memberships(x)[..., 0], torch.cat(height, dim=1) / sum(height))


def test_the_gradient_of_the_pooling_is_right():
    pooling = GaussianHistogram(3).double()
    x = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    molecule = torch.tensor([0, 0, 1, 2, 2, 2])
    assert torch.autograd.gradcheck(lambda x: pooling(x, molecule, 3), x)


def test_a_lone_atom_can_be_trained_on():
    norm, x = AtomNorm(4, affine=False), torch.randn(1, 4)
    assert_close(norm(x), x, atol=1e-4, rtol=1e-4)
    pairs = pack_pairs(["C"])
    model = WeaveModel(pairs.x.size(1), pairs.edge_attr.size(1), 1).train()
    outputs_of(model, pairs, [0]).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("task", [REGRESSION, LABELS], ids=lambda task: task.name)
def test_weave_can_overfit(task):
    truth = torch.randn(20, 1) if task is REGRESSION else labels()
    problem = problem_of(task, truth, epochs=100, weight_decay=0.0)
    fitting = Fitting(make_weave_trainer(problem))
    losses = [fitting.step().train_loss for _ in range(problem.settings.training.epochs)]
    assert losses[-1] < 0.05 < losses[0]


def test_weave_learns_from_training_rows_alone():
    truth = labels()
    problem = problem_of(LABELS, truth, hidden=4)
    changed = truth.clone()
    changed[15:] = 1 - changed[15:]
    fittings = [Fitting(make_weave_trainer(replace(problem, truth=t))) for t in (truth, changed)]
    for fitting in fittings:
        fitting.step()
    first, second = (fitting.trainer.outputs() for fitting in fittings)
    assert torch.equal(first, second)


def test_restored_weave_goes_on_bit_for_bit():
    problem = problem_of(
        *(REGRESSION, torch.arange(20.0).reshape(-1, 1)),
        **{"train": range(12), "validation": range(12, 16), "test": range(16, 20)},
        **{"epochs": 6, "batch_size": 5, "hidden": 8},
    )
    pairs = pack_pairs(problem.data.ids)

    def finished(fitting):
        while not fitting.done:
            fitting.step()
        fitting.restore_best()
        return repr(fitting.history), fitting.trainer.outputs()

    whole = finished(Fitting(make_weave_trainer(problem, pairs=pairs)))
    first = Fitting(make_weave_trainer(problem, pairs=pairs))
    for _ in range(3):
        first.step()
    second = Fitting(make_weave_trainer(problem, pairs=pairs))
    second.restore({name: tensor.clone() for name, tensor in first.tensors().items()})
    history, outputs = finished(second)
    assert history == whole[0]
    assert torch.equal(outputs, whole[1])
    other = Fitting(make_weave_trainer(problem, member=1, pairs=pairs))
    assert other.step().train_loss != first.history[0].train_loss


def test_every_parameter_is_a_weight_or_a_bias():
    model = WeaveModel(5, 14, 2)
    assert len(model.weights()) + len(model.biases()) == len(list(model.parameters()))
    assert {p.dim() for p in model.weights()} == {2}
    assert {p.dim() for p in model.biases()} == {1}


def test_pairs_of_other_molecules_are_refused():
    problem = problem_of(LABELS, labels())
    with pytest.raises(EdgewiseError, match="19 molecules with pairs are not the 20"):
        make_weave_trainer(problem, pairs=pack_pairs(SMILES[1:]))
