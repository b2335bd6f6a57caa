"""Tables of nodes and edges into a store whose rows are nodes."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.graph_reader import GraphReader
from edgewise.data.graph_store import StoreInfo, write_store_manifest
from edgewise.data.importing import ColumnChoices, Importer
from edgewise.data.store_files import checksum_of_rows
from edgewise.tasks.reading import find_task, guessed_targets
from edgewise.units.base import known_rows
from edgewise.units.imported_tables import ImportedTables, Learnt
from edgewise.units.node_tables import node_split


def import_nodes(tables: ImportedTables) -> None:
    """Write the files of a store; memory is bounded by the nodes, not by the edges."""
    like, settings = tables.like, tables.settings
    model = None if like is None else _reader(like)
    kept = _kept_columns(tables)
    rows, learnt = (None, {}) if like else _training_rows(tables, kept)
    importer = Importer(
        tables.nodes,
        tables.edges,
        scratch=tables.scratch,
        show=tables.show,
        reader=model,
        choices=_choices(tables, kept),
    )
    importer.read_ends()
    reader = importer.learn(rows)
    files, notes = importer.write(tables.folder, kept.columns)
    info = StoreInfo(
        features=reader.feature_names,
        channels=reader.channel_names,
        id_column=reader.id,
        targets=kept.targets,
        split_column=kept.split,
        reader=reader,
        notes=notes,
        categories=tuple(name for name in kept.targets if name in settings.data.categories),
        missing_values=settings.data.missing_values,
        decimal=tables.nodes.decimal,
        sources=tables.sources,
        **(learnt or {"learnt_by": f"as in {like.name}" if like else ""}),
    )
    write_store_manifest(tables.folder, files, info)


@dataclass(frozen=True)
class _Kept:
    """Columns of nodes that stay as they are."""

    targets: tuple[str, ...]
    split: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.targets, *filter(None, (self.split,)))


def _reader(like: Learnt) -> GraphReader:
    if not isinstance(like.encoder, GraphReader):
        raise EdgewiseError(
            f"{like.name} did not learn how tables of nodes and edges are read; name a run on "
            "tables, or a store"
        )
    return replace(like.encoder, labels=None)


def _kept_columns(tables: ImportedTables) -> _Kept:
    nodes, settings = tables.nodes, tables.settings
    targets = settings.data.target
    if tables.like is not None:
        targets = targets or tuple(name for name in tables.like.targets if name in nodes.columns)
    else:
        targets = targets or guessed_targets(nodes.columns)
        if not targets and settings.data.fit_on == "train":
            raise EdgewiseError(
                f"{nodes.path}: name the column to be predicted with --target, for scales and "
                "categories are learnt from its training rows, or say --fit-on all; the columns "
                f"are {preview(list(nodes.columns), limit=12)}"
            )
    nodes.require(*targets, *filter(None, (settings.split.split_column,)))
    return _Kept(targets, settings.split.split_column)


def _training_rows(tables: ImportedTables, kept: _Kept) -> tuple[np.ndarray | None, dict[str, Any]]:
    """The rows to learn from, and what a store says about them."""
    settings, data = tables.settings, tables.settings.data
    if not kept.targets:
        return None, {"learnt_by": "all rows"}
    if not data.target:
        tables.tell(f"keeping column {kept.targets[0]!r} to be predicted, because of its name")
    table = tables.nodes.whole(*kept.columns)
    task, truth = find_task(table, kept.targets, data.task, data.categories)
    train = known_rows(node_split(settings, task, truth, table), task, truth).train.numpy()
    if data.fit_on == "all":
        return None, {"split": tables.split, "learnt_by": "all rows"}
    return train, {
        "split": tables.split,
        "learnt_rows": checksum_of_rows(train),
        "learnt_by": f"the training rows of {tables.split_words}",
    }


def _choices(tables: ImportedTables, kept: _Kept) -> ColumnChoices:
    data = tables.settings.data
    return ColumnChoices(
        id=data.id_column,
        source=data.source_column,
        target=data.destination_column,
        directed=data.edges == "directed",
        unknown=data.unknown,
        duplicates=data.duplicates,
        missing=data.missing,
        numbers=data.numbers,
        categories=data.categories,
        text=data.text,
        ignore=tuple(dict.fromkeys((*data.ignore, *kept.columns))),
    )
