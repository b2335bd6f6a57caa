"""Codes of atoms and bonds to node features and edge channels, with a vocabulary that is learnt."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch

from edgewise.core.declarations import ModelSettings
from edgewise.core.errors import EdgewiseError, NotRegistered
from edgewise.core.files import write_atomically
from edgewise.core.registries import FEATURIZERS
from edgewise.core.schema import mismatch, read_json
from edgewise.data.atom_properties import NAMES, atom_properties
from edgewise.data.chemistry import ATOM_CODES, BOND_CODES, BOND_ORDERS, MoleculeCodes
from edgewise.graphs.graph_set import GraphSet

# Atomic numbers of the elements that have a place of their own; every other shares the last.
_PAPER_ELEMENTS = {
    "B": 5, "C": 6, "N": 7, "O": 8, "F": 9, "P": 15, "S": 16, "Cl": 17, "Br": 35, "I": 53,
}  # fmt: skip
_RICH_ELEMENTS = {
    "H": 1, "Li": 3, **_PAPER_ELEMENTS, "Na": 11, "Mg": 12, "Al": 13, "Si": 14, "K": 19, "Ca": 20,
    "Cr": 24, "Mn": 25, "Fe": 26, "Co": 27, "Ni": 28, "Cu": 29, "Zn": 30, "Ge": 32, "As": 33,
    "Se": 34, "Ag": 47, "Sn": 50, "Sb": 51, "Pt": 78, "Hg": 80,
}  # fmt: skip
_ELEMENTS = 118  # of the periodic table
_CHIRALITY = {"clockwise": 1, "counterclockwise": 2}
_HYBRIDISATION = {"s": 1, "sp": 2, "sp2": 3, "sp3": 4, "sp3d": 6, "sp3d2": 7}
_STEREO = {"any": 1, "Z": 2, "E": 3, "cis": 4, "trans": 5}


@runtime_checkable
class Featurizer(Protocol):
    """How molecules become node features and edge channels.

    One of your own defines ``channel_names``, :meth:`atoms` and :meth:`bonds`, and the other
    methods if there is something to learn; see docs/extending.md.
    """

    kind: str  # by which it is registered

    @classmethod
    def learn(
        cls, codes: MoleculeCodes, train: np.ndarray, settings: ModelSettings
    ) -> "Featurizer":
        """Learn what there is to learn, from the training molecules alone.

        Args:
            codes: Molecules as read.
            train: Positions of the training molecules in ``codes``.
            settings: Of the model.
        """
        return cls()

    @property
    def channel_names(self) -> tuple[str, ...]: ...

    def atoms(self, codes: MoleculeCodes) -> np.ndarray:
        """``[atoms, features]``, float32."""
        ...

    def bonds(self, codes: MoleculeCodes) -> np.ndarray:
        """``[bonds, channels]``, float32, not negative."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Everything that was learnt, under ``kind`` the name by which it is registered."""
        return {"kind": self.kind}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Featurizer":
        return cls()


@dataclass(frozen=True)
class PaperFeaturizer:
    """25 features per atom, as many as the paper has, and channels for pairs of elements.

    An atom has element, degree, hydrogens, charge, ring, aromaticity; a bond the pair of elements,
    the bond order, aromatic, conjugated, in ring.

    Args:
        pairs: Element pairs with a channel of their own, each as two atomic numbers in
            ascending order; any other pair goes to the channel "other".
    """

    pairs: tuple[tuple[int, int], ...]

    kind: ClassVar[str] = "paper"
    elements: ClassVar[dict[str, int]] = _PAPER_ELEMENTS

    @classmethod
    def learn(
        cls, codes: MoleculeCodes, train: np.ndarray, settings: ModelSettings
    ) -> "PaperFeaturizer":
        """A pair gets a channel if more than ``pair_threshold`` training bonds have it."""
        is_train = np.zeros(len(codes), dtype=bool)
        is_train[np.asarray(train, dtype=np.int64)] = True
        of_bond = np.repeat(is_train, np.diff(codes.bond_offset))
        count = Counter(map(tuple, bonded_elements(codes)[of_bond].tolist()))
        frequent = [(pair, n) for pair, n in count.items() if n > settings.pair_threshold]
        ordered = sorted(frequent, key=lambda item: (-item[1], item[0]))
        return cls(tuple((int(a), int(b)) for (a, b), _ in ordered))

    @property
    def atom_names(self) -> tuple[str, ...]:
        """The meaning of each node feature."""
        return tuple(name for name, _ in self._atom_columns(_no_rows(len(ATOM_CODES))))

    @property
    def channel_names(self) -> tuple[str, ...]:
        """The meaning of each edge channel."""
        columns = self._bond_columns(_no_rows(len(BOND_CODES)), _no_rows(2))
        return tuple(name for name, _ in columns)

    def atoms(self, codes: MoleculeCodes) -> np.ndarray:
        """``[atoms, features]``."""
        return _stacked(self._atom_columns(codes.atoms))

    def bonds(self, codes: MoleculeCodes) -> np.ndarray:
        """``[bonds, channels]``, zeros and ones."""
        return _stacked(self._bond_columns(codes.bonds, bonded_elements(codes)))

    def _atom_columns(self, atoms: np.ndarray) -> list["_Column"]:
        element, degree, hydrogens, charge, in_ring, aromatic, *_ = atoms.T
        return [
            *_one_hot("element", element, self.elements, other=True),
            *_counts("degree", degree, 5),
            *_counts("hydrogens", hydrogens, 4),
            ("charge", charge),
            ("in ring", in_ring),
            ("aromatic", aromatic),
        ]

    def _bond_columns(self, bonds: np.ndarray, elements: np.ndarray) -> list["_Column"]:
        order, aromatic, conjugated, in_ring, _ = bonds.T
        of_pair = [(elements == pair).all(axis=1) for pair in self.pairs]
        other = ~np.logical_or.reduce(of_pair) if of_pair else np.ones(len(bonds), dtype=bool)
        columns = [(_pair_name(p), hit) for p, hit in zip(self.pairs, of_pair, strict=True)]
        columns.append(("other pair", other))
        columns += [(name, order == code) for code, name in enumerate(BOND_ORDERS)]
        return [
            *columns,
            ("aromatic ring", aromatic),
            ("conjugated", conjugated),
            ("in ring", in_ring),
        ]

    def to_json(self) -> dict[str, Any]:
        """Everything that was learnt."""
        return {"kind": self.kind, "pairs": self.pairs}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "PaperFeaturizer":
        fault = mismatch(content, {"pairs": [[int]]})
        pairs = [] if fault else content["pairs"]
        if fault or not all(len(p) == 2 and 1 <= p[0] <= p[1] <= _ELEMENTS for p in pairs):
            raise EdgewiseError(fault or "its pairs are no pairs of elements")
        return cls(tuple((a, b) for a, b in pairs))

    def save(self, path: str | Path) -> None:
        """Write everything that was learnt as JSON."""
        write_atomically(path, json.dumps(self.to_json()))


class RichFeaturizer(PaperFeaturizer):
    """More elements; chirality, hybridisation, radical electrons; stereochemistry of bonds."""

    kind = "rich"
    elements = _RICH_ELEMENTS

    def _atom_columns(self, atoms: np.ndarray) -> list["_Column"]:
        *_, chirality, hybrid, radical = atoms.T
        return [
            *super()._atom_columns(atoms),
            *_one_hot("chirality", chirality, _CHIRALITY, other=True),
            *_one_hot("hybridisation", hybrid, _HYBRIDISATION, other=True),
            *_counts("radical electrons", radical, 2),
        ]

    def _bond_columns(self, bonds: np.ndarray, elements: np.ndarray) -> list["_Column"]:
        order, *_, stereo = bonds.T
        return [
            *super()._bond_columns(bonds, elements),
            ("other order", order < 0),
            *_one_hot("stereo", stereo, _STEREO),
        ]


class PropertiesFeaturizer(RichFeaturizer):
    """As rich, and what an atom contributes to logP, refractivity and polar surface; its roles."""

    kind = "properties"

    @property
    def atom_names(self) -> tuple[str, ...]:
        return (*super().atom_names, *NAMES)

    def atoms(self, codes: MoleculeCodes) -> np.ndarray:
        return np.concatenate([super().atoms(codes), atom_properties(codes.smiles)], axis=1)


def load_featurizer(path: str | Path) -> Featurizer:
    """Read a featuriser that a model was saved with."""
    try:
        content = read_json(Path(path), {"kind": str})
        found: Featurizer = FEATURIZERS[str(content["kind"])].from_json(content)
        return found
    except NotRegistered as error:
        raise EdgewiseError(f"{path}: {error}") from error
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise EdgewiseError(
            f"{path} is not a saved featuriser ({error}); copy the folder again, or train again"
        ) from error


def pack(codes: MoleculeCodes, featurizer: Featurizer) -> GraphSet:
    """Featurise molecules into one set; both directions of a bond stand side by side."""
    ends = codes.ends.astype(np.int64)
    both_ways = np.stack([ends, ends[:, ::-1]], axis=1).reshape(-1, 2)  # bond k: edges 2k, 2k+1
    return GraphSet(
        x=torch.from_numpy(featurizer.atoms(codes)),
        edge_index=torch.from_numpy(both_ways.T.copy()),
        edge_attr=torch.from_numpy(featurizer.bonds(codes)).repeat_interleave(2, dim=0),
        node_offset=torch.from_numpy(codes.atom_offset),
        edge_offset=torch.from_numpy(codes.bond_offset * 2),
        ids=codes.smiles,
        rows=torch.from_numpy(codes.rows),
        channel_names=featurizer.channel_names,
        id_name="smiles",
    )


def bonded_elements(codes: MoleculeCodes) -> np.ndarray:
    """The atomic numbers at the two ends of each bond, ascending, ``[bonds, 2]``."""
    first_atom = np.repeat(codes.atom_offset[:-1], np.diff(codes.bond_offset))
    return np.sort(codes.atoms[codes.ends + first_atom[:, None], 0], axis=1)


_Column = tuple[str, np.ndarray]  # a name and one value per row


def _one_hot(
    name: str, code: np.ndarray, values: dict[str, int], *, other: bool = False
) -> list[_Column]:
    columns = [(f"{name} {label}", code == value) for label, value in values.items()]
    if other:
        columns.append((f"{name} other", ~np.isin(code, list(values.values()))))
    return columns


def _counts(name: str, code: np.ndarray, most: int) -> list[_Column]:
    """One column for each count; the last one means "that many or more"."""
    code = np.minimum(code, most)
    return [(f"{name} {count}", code == count) for count in range(most + 1)]


def _stacked(columns: list[_Column]) -> np.ndarray:
    return np.stack([values for _, values in columns], axis=1).astype(np.float32)


def _no_rows(width: int) -> np.ndarray:
    return np.zeros((0, width), dtype=np.int16)


def _pair_name(pair: tuple[int, int]) -> str:
    from rdkit.Chem import GetPeriodicTable

    table = GetPeriodicTable()
    return "-".join(table.GetElementSymbol(number) for number in pair)
