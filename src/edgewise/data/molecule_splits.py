"""Splits that respect chemistry or the user: by scaffold, by a column, by a file of row numbers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.chemistry import require_rdkit
from edgewise.data.splits import Split, fractions_of, load_split
from edgewise.data.tables import Table

# Words people use for the three subsets, in any case.
_WORDS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}


def scaffold_split(
    smiles: Sequence[str], kind: str | Sequence[float] = "molecules", *, seed: int | None = None
) -> Split:
    """Keep molecules with the same Bemis-Murcko scaffold together.

    Whole scaffolds are dealt out, the most frequent first: to training while it has room, then
    to validation, then to test, which so gets the rare ones.

    Args:
        smiles: One readable SMILES per molecule.
        kind: A name or three fractions, see :func:`edgewise.data.splits.fractions_of`.
        seed: With a seed, scaffolds that fill less than half of validation or test are dealt in
            a random order.
    """
    fractions = fractions_of(kind)
    groups: dict[str, list[int]] = {}
    for position, scaffold in enumerate(scaffolds(smiles)):
        groups.setdefault(scaffold, []).append(position)
    room = [fraction * len(smiles) for fraction in fractions]
    large = min((part for part in room[1:] if part > 0), default=0.0) / 2
    ordered = sorted(groups.values(), key=lambda group: (-len(group), group[0]))
    first = [group for group in ordered if len(group) > large]
    rest = [group for group in ordered if len(group) <= large]
    if seed is not None:
        rest = [rest[i] for i in np.random.default_rng(seed).permutation(len(rest))]
    parts: tuple[list[int], list[int], list[int]] = ([], [], [])
    for group in [*first, *rest]:
        fits = [p for p in range(3) if len(parts[p]) + len(group) <= room[p] + 0.5]
        parts[fits[0] if fits else 0].extend(group)
    return Split(*(torch.tensor(sorted(part), dtype=torch.long) for part in parts))


def scaffolds(smiles: Sequence[str]) -> list[str]:
    """The Bemis-Murcko scaffold of each molecule; empty for one without a ring."""
    require_rdkit()
    from rdkit import Chem
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    found = []
    for position, text in enumerate(smiles):
        molecule = Chem.MolFromSmiles(text)
        if molecule is None:
            raise EdgewiseError(
                f"molecule {position}, {text!r}, cannot be read; leave unreadable rows out first"
            )
        found.append(MurckoScaffoldSmiles(mol=molecule))
    return found


def split_by_column(table: Table, name: str, rows: np.ndarray | None = None) -> Split:
    """Read the subset of each row from a column that says train, validation or test.

    Rows with an empty cell stay out of the split. With ``rows``, those of the structures that were
    read, the split counts structures, and other rows drop out; without, it counts rows.
    """
    subset = []
    for row, cell in enumerate(table.column(name)):
        word = cell.strip().lower()
        if word and word not in _WORDS:
            raise EdgewiseError(
                f"{table.where(row)}: column {name!r} holds {cell!r}, expected train, validation "
                "or test (or nothing, to leave the row out)"
            )
        subset.append(_WORDS.get(word, ""))
    counted = range(len(subset)) if rows is None else rows.tolist()
    members = {
        part: torch.tensor([i for i, row in enumerate(counted) if subset[row] == part]).long()
        for part in ("train", "validation", "test")
    }
    if not len(members["train"]):
        raise EdgewiseError(f"{table.path}: column {name!r} gives no row to training")
    return Split(**members)


def split_by_file(path: str | Path, read: np.ndarray, count: int) -> Split:
    """Read a split of table rows (see :func:`edgewise.data.splits.load_split`) for structures.

    Args:
        path: The file.
        read: The row of each structure; rows without one drop out.
        count: How many rows the table has; a row beyond is refused.
    """
    given = load_split(path)
    position = {row: i for i, row in enumerate(read.tolist())}
    members = {}
    for part, rows in given.parts().items():
        outside = [row for row in rows.tolist() if row >= count]
        if outside:
            raise EdgewiseError(
                f"{path}: {part} names row(s) {preview(outside)}, but the table has {count} rows, "
                "counted from 0"
            )
        kept = [position[row] for row in rows.tolist() if row in position]
        members[part] = torch.tensor(kept, dtype=torch.long)
    return Split(**members)
