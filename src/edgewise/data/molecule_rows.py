"""Molecules as rows that are whole graphs: read by RDKit, featurised by what was learnt."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.core.declarations import DataSettings
from edgewise.core.errors import EdgewiseError
from edgewise.core.registries import FEATURIZERS
from edgewise.core.settings import Settings
from edgewise.data.chemistry import MoleculeCodes, read_smiles
from edgewise.data.duplicates import duplicate_groups, duplicate_notices
from edgewise.data.featurizers import Featurizer, pack
from edgewise.data.graph_rows import GraphStretch, InvalidRow, Progress
from edgewise.data.molecule_splits import scaffold_split
from edgewise.data.molecule_tables import MoleculeTable, read_structures, smiles_column
from edgewise.data.splits import Split
from edgewise.data.streams import Stretch, stream_table
from edgewise.data.tables import Table
from edgewise.graphs.graph_set import GraphSet


@dataclass(frozen=True, eq=False)
class Molecules:
    """Molecules whose structures were read."""

    codes: MoleculeCodes

    has_direction = False  # both directions of a bond are there, and say the same
    splits = ("scaffold",)

    @property
    def rows(self) -> np.ndarray:
        return self.codes.rows

    def __len__(self) -> int:
        return len(self.codes)

    def learn(self, train: np.ndarray, settings: Settings) -> Featurizer:
        kind = FEATURIZERS[settings.model.featurizer]
        featurizer: Featurizer = kind.learn(self.codes, train, settings.model)
        return featurizer

    def packed(self, encoder: Any) -> tuple[GraphSet, tuple[str, ...]]:
        if not hasattr(encoder, "atoms"):
            raise EdgewiseError(
                "the model was not trained on molecules, so it cannot read them; give graphs as in "
                "training"
            )
        return pack(self.codes, encoder), ()

    def grouped_split(self, name: str, seed: int) -> Split | None:
        return scaffold_split(self.codes.smiles, seed=seed) if name in self.splits else None

    def notices(
        self, encoder: Any, targets: Mapping[str, np.ndarray], parts: Mapping[str, np.ndarray]
    ) -> list[str]:
        truth = np.stack(list(targets.values()), axis=1)
        groups = duplicate_groups(self.codes)
        return duplicate_notices(groups, self.codes.smiles, dict(parts), truth)


@dataclass(frozen=True, eq=False)
class MoleculeRows:
    """The rows of a file of molecules."""

    source: MoleculeTable

    named_by, may_be_invalid = "the SMILES", True

    @property
    def table(self) -> Table:
        return self.source.table

    @property
    def targets(self) -> tuple[str, ...]:
        return self.source.targets

    def other_columns(self) -> list[str]:
        return [
            name
            for name, cells in self.table.columns.items()
            if tuple(cell.strip() for cell in cells) != self.source.smiles
        ]

    def structures(
        self, *, on_invalid: str = "error", progress: Progress | None = None
    ) -> tuple[Molecules, tuple[InvalidRow, ...]]:
        codes, invalid = read_structures(self.source, on_invalid=on_invalid, progress=progress)
        return Molecules(codes), invalid


def stream_parts(paths: Sequence[Path], settings: DataSettings) -> Iterator[Stretch]:
    """Rows of one table in files of any length, some at a time; broken rows are kept."""
    sizes = [path.stat().st_size for path in paths]
    for path, before in zip(paths, accumulate(sizes, initial=0), strict=False):
        for stretch in stream_table(
            path,
            encoding=settings.encoding,
            decimal=settings.decimal,
            missing_values=settings.missing_values,
        ):
            yield replace(stretch, done=before + stretch.done, size=sum(sizes))


def read_stretch(stretch: Stretch, settings: DataSettings, usual: str) -> GraphStretch:
    """The molecules of some rows; ``usual`` is a name that the column of SMILES may have."""
    column = smiles_column(stretch.table, settings.smiles_column, usual)
    cells = stretch.table.column(column)
    codes = read_smiles(["" if i in stretch.broken else cell for i, cell in enumerate(cells)])
    errors = {row: reason for row, _, reason in codes.invalid} | stretch.broken
    structures = Molecules(codes)
    return GraphStretch(stretch.table, structures, errors, True, stretch.done, stretch.size)
