"""Molecules that stand more than once, however they are written."""

from collections.abc import Sequence

import numpy as np

from edgewise.core.errors import preview
from edgewise.data.chemistry import ATOM_CODES, BOND_CODES, MoleculeCodes, canonical_smiles

# What does not depend on the order in which atoms are written, as tags of chirality do.
_ATOM = [ATOM_CODES.index(name) for name in ("element", "degree", "hydrogens", "charge", "in_ring")]
_BOND = [BOND_CODES.index(name) for name in ("order", "in_ring")]
_ROUNDS = 3  # of exchange between neighbours; more tell more molecules apart
_SHOWN = 3


def duplicate_groups(codes: MoleculeCodes) -> list[list[int]]:
    """Positions of molecules with the same canonical SMILES, together; those alone are left out.

    Only molecules whose atoms and bonds agree are written canonically, which is slow.
    """
    if not len(codes):
        return []
    _, group, count = np.unique(fingerprints(codes), return_inverse=True, return_counts=True)
    (alike,) = np.nonzero(count[group] > 1)
    names = canonical_smiles([codes.smiles[i] for i in alike.tolist()])
    found: dict[str, list[int]] = {}
    for position, name in zip(alike.tolist(), names, strict=True):
        found.setdefault(name, []).append(position)
    return [group for group in found.values() if len(group) > 1]


def fingerprints(codes: MoleculeCodes) -> np.ndarray:
    """A number for each molecule that is the same for the same molecule: Weisfeiler-Lehman."""
    atoms, bonds = np.diff(codes.atom_offset), np.diff(codes.bond_offset)
    ends = codes.ends + np.repeat(codes.atom_offset[:-1], bonds)[:, None]
    bond = _mixed_columns(codes.bonds[:, _BOND])
    atom = _mixed_columns(codes.atoms[:, _ATOM])
    for _ in range(_ROUNDS):
        heard = np.zeros(len(atom), dtype=np.uint64)
        for here, there in ((0, 1), (1, 0)):
            np.add.at(heard, ends[:, here], _mixed(atom[ends[:, there]] ^ bond))
        atom = _mixed(atom + _mixed(heard))
    totals: np.ndarray = np.add.reduceat(_mixed(atom), codes.atom_offset[:-1])
    return _mixed(totals + atoms.astype(np.uint64))


def duplicate_notices(
    groups: Sequence[Sequence[int]],
    smiles: Sequence[str],
    parts: dict[str, np.ndarray],
    truth: np.ndarray,
) -> list[str]:
    """Sentences on molecules that stand in several parts of a split, or with several values.

    Args:
        groups: See :func:`duplicate_groups`.
        smiles: Of each molecule.
        parts: Positions of the molecules of each part.
        truth: Class numbers with -1 for unknown, or numbers with NaN for unknown, ``[molecules]``
            or ``[molecules, targets]``.
    """
    part = np.full(len(smiles), -1)
    for number, rows in enumerate(parts.values()):
        part[rows] = number
    values = np.where(truth < 0, np.nan, truth) if truth.dtype.kind == "i" else truth
    values = values.reshape(len(smiles), -1)
    across = [g[0] for g in groups if len({int(part[i]) for i in g if part[i] >= 0}) > 1]
    differing = [g[0] for g in groups if _differ(values[list(g)])]
    notices = []
    if across:
        notices.append(
            f"{_counted(across, smiles)} in more than one part of the split (the same canonical "
            "SMILES), so that the score is partly one of memory; keep one row of each, or keep "
            "them together with --split scaffold"
        )
    if differing:
        notices.append(
            f"{_counted(differing, smiles)} more than once with different values (the same "
            "canonical SMILES); keep one row of each, or say which holds"
        )
    return notices


def _differ(values: np.ndarray) -> bool:
    """Whether some column holds two different known values."""
    known = ~np.isnan(values)
    low = np.where(known, values, np.inf).min(axis=0)
    high = np.where(known, values, -np.inf).max(axis=0)
    return bool((low < high).any())


def _counted(molecules: list[int], smiles: Sequence[str]) -> str:
    some = preview([smiles[i] for i in molecules], limit=_SHOWN)
    return f"{len(molecules)} molecule{'s' * (len(molecules) > 1)} {some} stand" + "s" * (
        len(molecules) == 1
    )


def _mixed_columns(columns: np.ndarray) -> np.ndarray:
    mixed = np.zeros(len(columns), dtype=np.uint64)
    for column in columns.T:
        mixed = _mixed(mixed + column.astype(np.uint64))
    return mixed


def _mixed(values: np.ndarray) -> np.ndarray:
    """The splitmix64 hash of each number."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = values ^ (values >> np.uint64(31))
    return mixed
