"""Tables on their way into a store, and how others were read that they are imported like."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewise.core.settings import Settings
from edgewise.data.table_parts import TableParts

Show = Callable[[str, int, int | None], None]  # what is going on, how much is done, of how much
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Learnt:
    """How the tables of others were read, as which new ones are imported.

    Args:
        name: Of the run or the store.
        encoder: What was learnt about the columns.
        targets: What is predicted.
    """

    name: str
    encoder: Any
    targets: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ImportedTables:
    """Tables on their way into a store.

    Args:
        nodes: A row for each node.
        edges: A row for each edge.
        sources: Where they are.
        folder: For the files of the store.
        scratch: For what does not fit into memory.
        settings: How columns are read.
        like: As which tables; None: it is to be learnt.
        show: Called with what is going on, how much is done, of how much.
        tell: Called with each thing worth telling.
    """

    nodes: TableParts
    edges: TableParts
    sources: tuple[str, ...]
    folder: Path
    scratch: Path
    settings: Settings
    like: Learnt | None
    show: Show
    tell: Tell

    @property
    def split(self) -> dict[str, Any]:
        """The settings of the split from whose rows columns are learnt."""
        said, settings = self.settings.split, self.settings
        seed = settings.training.seed if said.split_seed is None else said.split_seed
        return {
            "split": said.split,
            "stratify": said.stratify,
            "split_seed": seed,
            "split_column": said.split_column,
        }

    @property
    def split_words(self) -> str:
        """The same as a user writes them."""
        said = self.split
        if said["split_column"]:
            return f"--split-column {said['split_column']}"
        stratify = " --stratify" * said["stratify"]
        return f"--split {said['split']}{stratify} --split-seed {said['split_seed']}"
