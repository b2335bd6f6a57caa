"""Rows of a table that are whole graphs, however they are written: as SMILES, or in tables.

A form of such data gives :class:`GraphRows`; what the unit does with them is the same for all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from edgewise.core.settings import Settings
from edgewise.data.splits import Split
from edgewise.data.tables import Table
from edgewise.graphs.graph_set import GraphSet

Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class InvalidRow:
    """A row whose structure could not be read."""

    row: int  # counted from 0
    line: int  # in the file; the row again where it has no lines
    smiles: str
    reason: str


@runtime_checkable
class Structures(Protocol):
    """Whole graphs as they were read, before anything is learnt from them."""

    @property
    def rows(self) -> np.ndarray:
        """Where each graph stands in its table."""
        ...

    @property
    def has_direction(self) -> bool:
        """Whether edges may have a direction, of which a model could learn."""
        ...

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of splits that only such structures have."""
        ...

    def __len__(self) -> int: ...

    def learn(self, train: np.ndarray, settings: Settings) -> Any:
        """What is learnt about the columns, from the training graphs; None: nothing is.

        Args:
            train: Positions of the training graphs.
            settings: Of data and model.
        """
        ...

    def packed(self, encoder: Any) -> tuple[GraphSet, tuple[str, ...]]:
        """The graphs as a model with this encoder reads them, and what was changed in reading."""
        ...

    def grouped_split(self, name: str, seed: int) -> Split | None:
        """A split that only such structures have; None: the name is not one of ``splits``."""
        ...

    def notices(
        self, encoder: Any, targets: Mapping[str, np.ndarray], parts: Mapping[str, np.ndarray]
    ) -> list[str]:
        """Sentences on what may make a score mean less than it says.

        Args:
            encoder: See :meth:`learn`.
            targets: What is to be predicted, by name: class numbers with -1 for unknown, or
                numbers with NaN for unknown.
            parts: Positions of the graphs of each part of the split.
        """
        ...


@runtime_checkable
class GraphRows(Protocol):
    """A table with a row for each graph, and where its structures are to be found."""

    @property
    def table(self) -> Table: ...

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns to predict, where a data set says so."""
        ...

    @property
    def named_by(self) -> str:
        """What stands in the table beside targets, for messages."""
        ...

    @property
    def may_be_invalid(self) -> bool:
        """Whether single rows may be unreadable; else all of them are refused together."""
        ...

    def other_columns(self) -> list[str]:
        """The columns that could be targets."""
        ...

    def structures(
        self, *, on_invalid: str = "error", progress: Progress | None = None
    ) -> tuple[Structures, tuple[InvalidRow, ...]]:
        """All graphs that can be read, and the rows that cannot.

        Args:
            on_invalid: ``"error"`` refuses rows that cannot be read, ``"skip"`` leaves them out.
            progress: Called with a title, the rows done and the rows in all.
        """
        ...


@dataclass(frozen=True, eq=False)
class GraphStretch:
    """Some rows of a table, one after the other, to be predicted."""

    table: Table
    structures: Structures
    errors: Mapping[int, str]  # rows that could not be read, and why
    marked: bool  # whether the predictions get a column of errors
    done: int = 1  # of so much
    size: int | None = 1
