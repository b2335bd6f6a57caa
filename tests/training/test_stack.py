"""Kernel regression on descriptors has its share in predictions where validation rows say so."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from edgewise.core.errors import EdgewiseError
from edgewise.core.manifest import write_manifest
from edgewise.core.presets import make_settings
from edgewise.data.chemistry import read_smiles
from edgewise.data.descriptors import Described, describe
from edgewise.data.splits import Split
from edgewise.tasks.classification import Classification
from edgewise.tasks.multilabel import Multilabel
from edgewise.tasks.regression import Regression
from edgewise.training import fit_member, load_model, make_predictor
from edgewise.training.stack import (
    FILE,
    MIXTURES,
    NOISES,
    blending_weight,
    choose,
    fit,
    kernel,
    load_stack,
)
from edgewise.units.graph import molecule_problem

ENDS = ("O", "N", "Cl", "C(=O)O", "c1ccccc1", "C#N")
SMILES = tuple("C" * n + end for n in range(1, 8) for end in ENDS)
SIZE = np.array([[float(len(s))] for s in SMILES])
TINY = {"hidden": 8, "depth": 1, "feed_forward": 0, "epochs": 2, "directed": False}


def problem_of(task, truth, **changes):
    order = torch.randperm(len(SMILES), generator=torch.Generator().manual_seed(0))
    split = Split(order[:26], order[26:36], order[36:])
    settings = make_settings("graph", **TINY | changes)
    return molecule_problem(read_smiles(SMILES), task, torch.as_tensor(truth), split, settings)


def trained(problem):
    return make_predictor(problem, (fit_member(problem).trainer.model,))


@pytest.mark.parametrize("mixture", [0.0, 0.3, 1.0])
def test_the_kernel_is_tanimoto_and_gaussian_in_their_shares(mixture):
    left, right = describe(SMILES[:5]), describe(SMILES[3:])
    found = kernel(left, right, mixture)
    bits = [[[set(row.indices) for row in one] for one in m.fingerprints] for m in (left, right)]
    for i, j in np.ndindex(found.shape):
        pairs = [(mine[i], other[j]) for mine, other in zip(*bits, strict=True)]
        alike = np.mean([len(a & b) / len(a | b) for a, b in pairs])
        apart = np.mean((left.values[i].astype(float) - right.values[j]) ** 2)
        expected = mixture * alike + (1 - mixture) * np.exp(-apart / 2)
        assert_allclose(found[i, j], expected, rtol=2e-4)


def test_mixture_and_noise_are_those_of_the_lowest_error_of_molecules_that_are_left_out():
    known, wanted = describe(SMILES), SIZE - SIZE.mean()
    errors = {}
    for mixture in MIXTURES:
        similarity = kernel(known, known, mixture).astype(np.float64)
        for noise in NOISES:
            left_out = []
            for i in range(len(known)):
                others = np.delete(np.arange(len(known)), i)
                matrix = similarity[np.ix_(others, others)] + noise * np.eye(len(others))
                found = similarity[i, others] @ np.linalg.solve(matrix, wanted[others])
                left_out.append(found - wanted[i])
            errors[mixture, noise] = np.mean(np.square(left_out))
    assert choose(known, wanted) == min(errors, key=errors.get)


def test_each_output_learns_from_the_molecules_of_which_it_is_known():
    truth = np.concatenate([SIZE, SIZE**2, SIZE], axis=1)
    truth[::3, 1] = np.nan
    kept = np.flatnonzero(~np.isnan(truth[:, 1]))
    alpha = fit(SMILES, truth).alpha
    assert (alpha[::3, 1] == 0).all()
    assert (alpha[::3, 0] != 0).all()
    assert_allclose(alpha[:, 0], alpha[:, 2])
    alone = fit([SMILES[row] for row in kept], truth[kept][:, [1]])
    assert len(alone.alpha) == len(kept)
    nothing = np.concatenate([SIZE, np.full_like(SIZE, np.nan)], axis=1)
    assert (fit(SMILES, nothing).predict(SMILES)[:, 1] == 0).all()


def test_values_are_learnt_from_descriptors_and_stay_within_those_seen():
    stack = fit(SMILES, SIZE)
    assert np.abs(stack.predict(SMILES) - SIZE).max() < 1
    far = stack.predict(["C" * 60, "", "not a molecule"])
    assert (far >= SIZE.min()).all()
    assert (far <= SIZE.max()).all()


def test_the_weight_of_a_blend_is_that_of_the_lowest_squared_error():
    draw = np.random.default_rng(0)
    truth = draw.normal(size=(40, 2)) * [1, 100]
    first, second = (truth + draw.normal(size=(40, 2)) * s * [1, 100] for s in (1.0, 0.7))
    truth[:7, 0] = np.nan
    grid = np.linspace(0, 1, 2001)
    scale = np.nanstd(truth, axis=0)
    error = [np.nansum((((1 - w) * first + w * second - truth) / scale) ** 2) for w in grid]
    found = blending_weight(truth, first, second)
    assert abs(found - grid[np.argmin(error)]) < 1e-3
    assert blending_weight(truth, truth, second) == 0
    assert blending_weight(truth, first, truth) == pytest.approx(1)
    assert blending_weight(truth, first, first) == 0


@pytest.mark.slow
def test_a_model_with_descriptors_predicts_the_same_after_it_was_saved(tmp_path):
    problem = problem_of(Regression(("size",)), SIZE.astype(np.float32))
    model = make_predictor(problem, tuple(fit_member(problem, k).trainer.model for k in range(2)))
    assert model.stack is not None
    assert 0 < model.stack.weight <= 1
    predicted, networks = model.predict(SMILES), replace(model, stack=None).predict(SMILES)
    w = model.stack.weight
    expected = (1 - w) * networks.mean + w * model.stack.predict(SMILES)
    assert_allclose(predicted.mean, expected, rtol=1e-6)
    assert_allclose(predicted.deviation, networks.deviation)
    model.save(tmp_path)
    assert_allclose(load_model(tmp_path).predict(SMILES).mean, predicted.mean, rtol=1e-6)


def test_descriptors_are_left_out_where_the_settings_say_so():
    truth = SIZE.astype(np.float32)
    assert trained(problem_of(Regression(("size",)), truth, descriptors="none")).stack is None
    assert trained(problem_of(Regression(("size",)), truth, layer="conv")).stack is None


def test_descriptors_that_are_gone_or_changed_are_refused(tmp_path):
    trained(problem_of(Regression(("size",)), SIZE.astype(np.float32))).save(tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[:-4] + b"\0\0\0\1")
    with pytest.raises(EdgewiseError, match=FILE):
        load_model(tmp_path)
    (tmp_path / FILE).unlink()
    with pytest.raises(EdgewiseError, match=FILE):
        load_model(tmp_path)
    # Of another model: the checksum fits, the sizes do not.
    other = fit(SMILES, np.concatenate([SIZE, SIZE], axis=1))
    other.save(tmp_path)
    write_manifest(tmp_path, [FILE])
    with pytest.raises(EdgewiseError, match=r"does not fit model.json"):
        load_model(tmp_path)


def test_probabilities_of_classes_stay_probabilities():
    classes = np.array([k % 3 for k in range(len(SMILES))])
    classes[4] = -1
    model = trained(problem_of(Classification(("kind",), ("a", "b", "c")), classes))
    found = model.predict(SMILES).mean
    assert_allclose(found.sum(axis=1), 1)
    assert (found >= 0).all()
    labels = np.stack([classes == 1, classes == 2], axis=1).astype(np.float32)
    labels[:5, 1] = np.nan
    found = trained(problem_of(Multilabel(("b", "c")), labels)).predict(SMILES).mean
    assert ((found >= 0) & (found <= 1)).all()


def test_a_model_that_knows_the_first_fingerprint_alone_is_read_and_compares_by_it(tmp_path):
    found = fit(SMILES, SIZE)
    first = Described(found.known.fingerprints[:1], found.known.values)
    replace(found, known=first).save(tmp_path)
    write_manifest(tmp_path, [FILE])
    read = load_stack(tmp_path, Regression(("size",)))
    assert len(read.known.fingerprints) == 1
    assert_allclose(read.predict(SMILES), replace(found, known=first).predict(SMILES), rtol=1e-6)


def test_without_validation_rows_nothing_says_that_descriptors_help():
    problem = problem_of(Regression(("size",)), SIZE.astype(np.float32))
    nothing = torch.zeros(0, dtype=torch.int64)
    alone = molecule_problem(
        read_smiles(SMILES), Regression(("size",)), problem.truth,
        Split(problem.split.train, nothing, nothing), problem.settings,
    )  # fmt: skip
    assert trained(alone).stack is None
