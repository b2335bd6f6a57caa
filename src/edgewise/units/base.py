"""What one row of predictions is. A unit of your own is a class of this kind."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from edgewise.core.devices import find_device
from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.foreign import refuse_foreign, without_foreign
from edgewise.core.presets import make_settings
from edgewise.core.registries import LAYERS, UNITS
from edgewise.core.settings import Settings
from edgewise.data.graph_rows import InvalidRow
from edgewise.data.sources import Source
from edgewise.data.splits import Split
from edgewise.data.streams import Stretch
from edgewise.data.tables import Table
from edgewise.graphs.batch import Batches
from edgewise.nn.network import Network
from edgewise.tasks.base import Columns, Prediction, Task
from edgewise.units.imported_tables import ImportedTables, Show, Tell
from edgewise.units.unused_settings import refuse_unused


@runtime_checkable
class Encoder(Protocol):
    """What was learnt about the columns of the data; saved with the model.

    Where its unit has several kinds, ``file`` is the name of the file it is saved in.
    """

    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be learnt from which rows: data, their truth and their split."""

    unit: "Unit"
    data: Batches
    task: Task
    truth: Tensor  # in the form of the task
    split: Split
    settings: Settings  # with what the data decided
    encoder: Encoder | None = None  # None: the data came ready


@dataclass(frozen=True, eq=False)
class Opened:
    """A problem as it was opened, and what the user should be told about it."""

    problem: Problem
    notes: tuple[str, ...]
    invalid: tuple[InvalidRow, ...] = ()  # rows that could not be read
    notices: tuple[str, ...] = ()  # sentences on what may make the scores mean less


@runtime_checkable
class Predicts(Protocol):
    """A trained model, as far as a unit needs it."""

    @property
    def task(self) -> Task: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def encoder(self) -> Any: ...

    @property
    def reference(self) -> Any: ...

    def predict(self, data: Batches) -> Prediction: ...


@dataclass(frozen=True, eq=False)
class Predicted:
    """Some rows of a table of predictions."""

    columns: Columns
    good: int  # rows that were predicted
    bad: int = 0  # rows that could not be
    table: Table | None = None  # the user's own columns, which stand before the others
    done: int = 0  # of so much that is to be read
    size: int | None = None


@dataclass(frozen=True)
class Asked:
    """What else is asked of predictions for new data.

    Args:
        smiles_column: Of molecules, if it is not that of the training.
        progress: Called while molecules are read.
        tell: Called with each thing worth telling.
    """

    smiles_column: str = ""
    progress: Show | None = None
    tell: Tell = lambda _: None


class Unit:
    """What a row is: how it is named, read, split, batched and written."""

    name: ClassVar[str]
    plural: ClassVar[str]
    estimator: ClassVar[str]  # how the names of its estimators begin
    settings: ClassVar[frozenset[str]]  # those that are this unit's to take
    not_searched: ClassVar[frozenset[str]] = frozenset()  # settings that edgewise tune leaves alone
    id_column: ClassVar[str] = "id"  # of a table of predictions, that names the rows
    error_view: ClassVar[str] = "nodes"  # how the report shows single rows
    encoder_file: ClassVar[str]  # where what was learnt about the columns is saved
    reference_file: ClassVar[str] = ""  # where what is kept of the training rows is saved
    encoder_files: ClassVar[tuple[str, ...]] = ()  # where there are several kinds of it

    # Those of an import that are this unit's to take; without any there is no store of its rows.
    import_settings: ClassVar[frozenset[str]] = frozenset()

    def kept_columns(self, task: Task) -> tuple[str, ...]:
        """The columns of tables that a store keeps for what is predicted."""
        return tuple(task.names)

    def import_tables(self, tables: ImportedTables) -> None:
        """Read tables, and write the files of a store."""
        raise NotImplementedError

    def open(self, source: Source, settings: Settings, progress: Show | None = None) -> Opened:
        """Read data, find the task, split the rows, and learn from those of training."""
        raise NotImplementedError

    def takes(self, settings: Settings) -> frozenset[str]:
        """Those of its settings that hold beside the others."""
        return self.settings

    def check_divisible(self, settings: Settings) -> None:
        """Refuse settings whose batches cannot be divided among several processes."""
        raise EdgewiseError(
            f"a step of training takes the whole graph where {self.plural} are predicted, so "
            "several workers have nothing to divide; leave --workers out"
        )

    def changed(self, problem: Problem, settings: Settings) -> Problem:
        """The same rows under other settings of the model."""
        return replace(problem, settings=settings)

    def network(self, features: int, outputs: int, channels: int, settings: Settings) -> Network:
        """The network of these settings, with fresh weights."""
        raise NotImplementedError

    def predicted(self, model: Predicts, source: Source, asked: Asked) -> Iterator[Predicted]:
        """Predictions for new data, some rows at a time, in their order."""
        raise NotImplementedError

    def stretches(self, settings: Settings, source: Source) -> Iterator[Stretch]:
        """New rows some at a time, as they stand in their file, for others to predict."""
        raise EdgewiseError(
            f"the model predicts {self.plural} of a graph, which is read as a whole; --workers and "
            "--engine ray are for files of molecules"
        )

    def predicted_stretch(
        self, model: Predicts, source: Source, stretch: Stretch, asked: Asked
    ) -> Predicted:
        """Predictions for one of :meth:`stretches`."""
        raise NotImplementedError

    def scored(
        self, model: Predicts, source: Source, *, pairs: Table | None, top: int, ids: Table | None
    ) -> Iterator[Predicted]:
        """Scores of pairs of nodes, or the likeliest partners of some nodes."""
        raise EdgewiseError(
            f"the model predicts {self.plural}; --pairs, --top and --for are for links"
        )

    def evaluated(
        self, model: Predicts, source: Source, asked: Asked
    ) -> tuple[Prediction, np.ndarray]:
        """Predictions for new data and the truth in them."""
        raise NotImplementedError

    def estimator_of(self, encoder: Any) -> str:
        """How the names of estimators begin for models with this encoder."""
        return self.estimator

    def load_encoder(self, path: Path) -> Any:
        """What was learnt about the columns, as it was saved."""
        raise NotImplementedError

    def reference(self, problem: Problem) -> Any:
        """What is kept of the training rows, to tell how far others are from them; or None."""
        return None

    def load_reference(self, tensors: Mapping[str, Tensor]) -> Any:
        """What :meth:`reference` gave, as it was saved."""
        raise NotImplementedError

    def distance_columns(self, reference: Any, data: Batches) -> Columns:
        """How far rows are from those of training."""
        return {}

    def as_data(self, value: Any, encoder: Any, device: torch.device) -> Batches:
        """Data of this unit in any of the forms that Python code may hand over."""
        raise NotImplementedError

    def are_molecules(self, problem: Problem) -> bool:
        """Whether the rows are molecules, named by their SMILES."""
        return False

    def described_columns(self, problem: Problem) -> list[str]:
        """A line for each column of the data, for people: what it was read as."""
        return []

    def summarised_columns(self, problem: Problem) -> str:
        """One line on all columns of the data: what each was read as."""
        return ""

    def row_columns(self, problem: Problem, rows: slice) -> Columns:
        """The columns that name some rows, one after the other."""
        return {"id": list(problem.data.ids[rows])}

    def row_names(self, cells: Mapping[str, Sequence[str]]) -> Sequence[str]:
        """The name of each row of a table of predictions."""
        return cells[self.id_column]

    def row_times(self, problem: Problem) -> np.ndarray | None:
        """When each row happens; None where there are no times."""
        return None

    def needs_split(self, settings: Settings) -> bool:
        """Whether what rows are predicted from depends on the split of a run."""
        return False

    def rows_of_file(self, problem: Problem, rows: Tensor) -> Tensor:
        """Rows of a problem as the table or the graph counts them."""
        return rows


def resolve(
    source: Source,
    preset: str,
    given: Mapping[str, Any],
    *,
    certain: bool = True,
    also: Mapping[str, Any] | None = None,
) -> tuple[Unit, Settings]:
    """The unit of a source, and its settings; a setting that does not apply is refused.

    Args:
        source: The data.
        preset: Whose settings are started from.
        given: Settings that somebody set, by their names.
        certain: False leaves settings that do not apply alone.
        also: Settings from a file that says them all; ``given`` win, and none is refused.
    """
    said = {**(also or {}), **given}
    unit: Unit = UNITS[source.unit_for(str(said.get("predict", "auto")))]
    settings = make_settings(unit.name, preset, implied=source.implied, **said)
    kept = {*said, *source.implied}
    settings = without_foreign(settings, "source", source.settings, kept)
    if certain:
        layer = LAYERS[settings.model.layer]
        name = settings.model.layer
        # A file that says them all also says what follows from the data.
        own = [k for k, v in given.items() if k not in source.implied or v != source.implied[k]]
        refuse_foreign(own, "source", source.settings, f"{source} is {source.described}")
        takes = unit.takes(settings)
        refuse_foreign(given, "unit", takes, f"what is predicted are {unit.plural}")
        refuse_foreign(given, "layer", layer.settings, f"the layer {name} does not take it")
        refuse_unused(given, settings)
        # Which task it is may only be known when the data are read.
    find_device(settings.training.device)
    return unit, settings


def required_truth(truth: Tensor | EdgewiseError | None, source: Source, task: Task) -> Tensor:
    """The truth that predictions are compared with; without it, the reason is raised."""
    if truth is None:
        raise EdgewiseError(f"{source} has no labels to compare with; give {preview(task.names)}")
    if isinstance(truth, EdgewiseError):
        raise truth
    return truth


def known_rows(split: Split, task: Task, truth: Tensor) -> Split:
    """The split without rows of which nothing is known."""
    beyond = [int(r) for part in split.parts().values() for r in part[part >= len(truth)]]
    if beyond:
        raise EdgewiseError(
            f"the split names row(s) {preview(beyond)}, but there are {len(truth)}, counted from 0"
        )
    known = torch.zeros(len(truth), dtype=torch.bool)
    known[task.labelled_rows(truth)] = True
    kept = Split(**{name: rows[known[rows]] for name, rows in split.parts().items()})
    if not len(kept.train):
        raise EdgewiseError(
            f"no row with a known target is left for training ({kept}); give more rows, or another "
            "split"
        )
    return kept
