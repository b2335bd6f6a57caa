"""SMILES to integer codes of atoms and bonds. Needs RDKit, and no torch, so workers start fast."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from typing import Any

import numpy as np

from edgewise.core.errors import EdgewiseError, missing_extra
from edgewise.core.processes import end_with_parent

ATOM_CODES = (
    *("element", "degree", "hydrogens", "charge", "in_ring", "aromatic"),
    *("chirality", "hybridisation", "radical_electrons"),
)
BOND_CODES = ("order", "aromatic", "conjugated", "in_ring", "stereo")
BOND_ORDERS = ("single", "aromatic", "double", "triple")  # codes 0..3; -1 is any other
_CHUNK = 512
REMEMBERED = 2048  # molecules; more than are predicted at a time


@dataclass(frozen=True)
class MoleculeCodes:
    """Molecules as flat integer arrays with offsets: everything a featuriser may ask for."""

    smiles: tuple[str, ...]
    rows: np.ndarray  # [molecules], row of each molecule in its table
    atom_offset: np.ndarray  # [molecules + 1]
    bond_offset: np.ndarray  # [molecules + 1]
    atoms: np.ndarray  # [atoms, len(ATOM_CODES)]
    bonds: np.ndarray  # [bonds, len(BOND_CODES)]
    ends: np.ndarray  # [bonds, 2], atoms counted within the molecule
    invalid: tuple[tuple[int, str, str], ...]  # row, SMILES, reason

    def __len__(self) -> int:
        return len(self.smiles)


def read_smiles(
    smiles: Sequence[str],
    *,
    workers: int = 1,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> MoleculeCodes:
    """Read every SMILES; those that cannot be read are listed with row and reason.

    Args:
        smiles: One SMILES per row.
        workers: Number of worker processes. With more than one, a script needs the
            usual ``if __name__ == "__main__":``.
        progress: Called with a title, the rows done and the rows in all.
    """
    require_rdkit()
    starts = range(0, len(smiles), _CHUNK)
    chunks = [(start, list(smiles[start : start + _CHUNK])) for start in starts]
    if workers > 1 and len(chunks) > 1:
        parts = _in_processes(chunks, min(workers, len(chunks)), len(smiles), progress)
    else:
        parts = []
        for start, chunk in chunks:
            parts.append(_read_chunk((start, chunk)))
            if progress is not None:
                progress("reading molecules", start + len(chunk), len(smiles))
    return _joined(parts)


def sdf_records(stream: Any) -> Iterator[dict[str, Any]]:
    """Each structure of an SDF as SMILES beside its properties; unreadable, it has no SMILES."""
    require_rdkit()
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        for molecule in Chem.ForwardSDMolSupplier(stream):
            properties, smiles = {}, ""
            if molecule is not None:
                properties = molecule.GetPropsAsDict(
                    includePrivate=False, includeComputed=False, autoConvertStrings=False
                )
                smiles = Chem.MolToSmiles(molecule)
            # The structure counts, also where a property is called smiles.
            yield {"smiles": "", **properties} | {"smiles": smiles}


def canonical_smiles(smiles: Sequence[str]) -> list[str]:
    """The one SMILES that RDKit writes for each molecule, however it was written."""
    require_rdkit()
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        different = {text: Chem.MolFromSmiles(text) for text in dict.fromkeys(smiles)}
        written = {text: Chem.MolToSmiles(molecule) for text, molecule in different.items()}
    return [written[text] for text in smiles]


@lru_cache(REMEMBERED)
def parsed(smiles: str) -> Any:
    """The molecule of RDKit, or None. Graph, descriptors and distance ask for it one after another.

    Nobody may change it.
    """
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        return Chem.MolFromSmiles(smiles) if smiles.strip() else None


def require_rdkit() -> None:
    try:
        import rdkit  # noqa: F401
    except ImportError as error:
        raise missing_extra("rdkit", "molecules", "reading molecules") from error


def _in_processes(
    chunks: list[tuple[int, list[str]]],
    workers: int,
    total: int,
    progress: Callable[[str, int, int | None], None] | None,
) -> list[MoleculeCodes]:
    # Spawned, because forking a process that runs torch's threads may hang.
    parts = []
    try:
        with ProcessPoolExecutor(workers, get_context("spawn"), end_with_parent) as pool:
            for (start, chunk), part in zip(chunks, pool.map(_read_chunk, chunks), strict=True):
                parts.append(part)
                if progress is not None:
                    progress("reading molecules", start + len(chunk), total)
    except BrokenProcessPool as error:
        raise EdgewiseError(
            "a worker process ended while it read molecules; put the script's work under "
            'if __name__ == "__main__":, or pass workers=1'
        ) from error
    return parts


def _read_chunk(chunk: tuple[int, list[str]]) -> MoleculeCodes:
    from rdkit import rdBase

    first, smiles = chunk
    kept: list[tuple[int, str, Any]] = []
    invalid = []
    with rdBase.BlockLogs():
        for row, text in enumerate(smiles, start=first):
            molecule = parsed(text)
            if molecule is None or molecule.GetNumAtoms() == 0:
                invalid.append((row, text, _reason(text)))
            else:
                kept.append((row, text, molecule))
    coded = [_codes(molecule) for _, _, molecule in kept]
    atoms = [atom for molecule_atoms, _ in coded for atom in molecule_atoms]
    bonds = [bond for _, molecule_bonds in coded for bond in molecule_bonds]
    table = np.array(bonds, dtype=np.int32).reshape(-1, 2 + len(BOND_CODES))
    return MoleculeCodes(
        smiles=tuple(text for _, text, _ in kept),
        rows=np.array([row for row, _, _ in kept], dtype=np.int64),
        atom_offset=_offsets([len(molecule_atoms) for molecule_atoms, _ in coded]),
        bond_offset=_offsets([len(molecule_bonds) for _, molecule_bonds in coded]),
        atoms=np.array(atoms, dtype=np.int16).reshape(-1, len(ATOM_CODES)),
        bonds=table[:, 2:],
        ends=table[:, :2],
        invalid=tuple(invalid),
    )


def _codes(molecule: Any) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    from rdkit.Chem import BondType

    order = {
        BondType.SINGLE: 0,
        BondType.AROMATIC: 1,
        BondType.DOUBLE: 2,
        BondType.TRIPLE: 3,
    }
    # By number: RDKit's own iterators check the size of the molecule before each step.
    atoms: list[tuple[int, ...]] = [
        (
            atom.GetAtomicNum(),
            atom.GetDegree(),
            atom.GetTotalNumHs(),
            atom.GetFormalCharge(),
            atom.IsInRing(),
            atom.GetIsAromatic(),
            int(atom.GetChiralTag()),
            int(atom.GetHybridization()),
            atom.GetNumRadicalElectrons(),
        )
        for atom in map(molecule.GetAtomWithIdx, range(molecule.GetNumAtoms()))
    ]
    bonds: list[tuple[int, ...]] = [
        (
            bond.GetBeginAtomIdx(),
            bond.GetEndAtomIdx(),
            order.get(bond.GetBondType(), -1),
            bond.GetIsAromatic(),
            bond.GetIsConjugated(),
            bond.IsInRing(),
            int(bond.GetStereo()),
        )
        for bond in map(molecule.GetBondWithIdx, range(molecule.GetNumBonds()))
    ]
    return atoms, bonds


def _reason(text: str) -> str:
    """Why RDKit refused, found by a second, slower reading."""
    from rdkit import Chem

    if not text.strip():
        return "no SMILES"
    molecule = Chem.MolFromSmiles(text, sanitize=False)
    if molecule is None:
        return "not a SMILES that RDKit can parse"
    if molecule.GetNumAtoms() == 0:
        return "no atoms"
    try:
        Chem.SanitizeMol(molecule)
    except ValueError as error:
        return str(error).strip()
    return "not a SMILES that RDKit can parse"


def _offsets(counts: list[int] | np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def _joined(parts: list[MoleculeCodes]) -> MoleculeCodes:
    parts = parts or [_read_chunk((0, []))]
    return MoleculeCodes(
        smiles=tuple(text for part in parts for text in part.smiles),
        rows=np.concatenate([part.rows for part in parts]),
        atom_offset=_offsets(np.concatenate([np.diff(part.atom_offset) for part in parts])),
        bond_offset=_offsets(np.concatenate([np.diff(part.bond_offset) for part in parts])),
        atoms=np.concatenate([part.atoms for part in parts]),
        bonds=np.concatenate([part.bonds for part in parts]),
        ends=np.concatenate([part.ends for part in parts]),
        invalid=tuple(entry for part in parts for entry in part.invalid),
    )
