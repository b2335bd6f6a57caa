"""Tables of nodes and edges into a store whose rows are edges."""

from typing import Any

import numpy as np
import torch

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import Settings
from edgewise.data.edge_importing import EdgeChoices, EdgeImporter
from edgewise.data.edge_reader import EdgeReader
from edgewise.data.edge_store import EdgeStoreInfo, write_edge_manifest
from edgewise.data.importing import ColumnChoices
from edgewise.data.store_files import checksum_of_rows
from edgewise.data.times import read_times
from edgewise.tasks.reading import find_task, guessed_targets
from edgewise.units.base import known_rows
from edgewise.units.edge_tables import refuse_merging, split_of_edges, without_unknown_ends
from edgewise.units.imported_tables import ImportedTables, Learnt


def import_edges(tables: ImportedTables) -> None:
    """Write the files of a store; of the edges, one column at a time is in memory."""
    like, settings, edges = tables.like, tables.settings, tables.edges
    refuse_merging(settings, "the rows here")
    known = None if like is None else reader_of(like, "edges")
    targets = _targets(tables)
    split_column = settings.split.split_column
    kept = tuple(dict.fromkeys((*targets, *filter(None, (split_column,)))))
    importer = EdgeImporter(
        tables.nodes,
        edges,
        scratch=tables.scratch,
        show=tables.show,
        reader=None if known is None else known.tables,
        choices=column_choices(settings, kept),
    )
    importer.read_ends()
    time = settings.split.time_column if known is None else known.time
    times = read_times(edges.whole(time), time) if time else None
    learnt: dict[str, Any] = {"learnt_by": f"as in {like.name}" if like else ""}
    if known is None:
        rows, learnt = _training_rows(tables, targets, kept, importer.unknown, times)
        known = importer.learn_edges(rows, _edge_choices(settings))
    files, reader, notes = importer.write_edges(
        tables.folder, known, kept, times, like=like is not None
    )
    info = EdgeStoreInfo(
        reader,
        rows=len(edges),
        targets=targets,
        split_column=split_column,
        ports=settings.model.ports if like is None else reader.ports,
        notes=notes,
        categories=tuple(name for name in targets if name in settings.data.categories),
        missing_values=settings.data.missing_values,
        decimal=edges.decimal,
        sources=tables.sources,
        **learnt,
    )
    write_edge_manifest(tables.folder, files, info)


def reader_of(like: Learnt, plural: str) -> EdgeReader:
    """How tables were read before to predict ``plural``."""
    if not isinstance(like.encoder, EdgeReader) or not like.encoder.has_nodes:
        raise EdgewiseError(
            f"{like.name} did not learn how a table of nodes and one of edges are read, to predict "
            f"{plural}; name such a run, or its store"
        )
    return like.encoder


def _targets(tables: ImportedTables) -> tuple[str, ...]:
    edges, settings = tables.edges, tables.settings
    if not len(edges):
        raise EdgewiseError(f"{edges.path} has a header but no rows; add some edges")
    targets = settings.data.target
    if tables.like is not None:
        targets = targets or tuple(name for name in tables.like.targets if name in edges.columns)
    elif not targets:
        targets = guessed_targets(edges.columns)
        if not targets:
            raise EdgewiseError(
                f"{edges.path}: name the column to be predicted with --target; the columns are "
                f"{preview(list(edges.columns), limit=12)}"
            )
        tables.tell(f"keeping column {targets[0]!r} to be predicted, because of its name")
    edges.require(*targets, *filter(None, (settings.split.split_column,)))
    return targets


def _training_rows(
    tables: ImportedTables,
    targets: tuple[str, ...],
    kept: tuple[str, ...],
    unknown: np.ndarray,
    times: np.ndarray | None,
) -> tuple[np.ndarray | None, dict[str, Any]]:
    """The edges to learn from, and what a store says about them."""
    settings, data = tables.settings, tables.settings.data
    table = tables.edges.whole(*kept)
    task, truth = find_task(table, targets, data.task, data.categories)
    truth = without_unknown_ends(truth, task, torch.from_numpy(unknown))
    split = known_rows(split_of_edges(settings, task, truth, table, times), task, truth)
    if data.fit_on == "all":
        return None, {"split": tables.split, "learnt_by": "all rows"}
    train = split.train.numpy()
    return train, {
        "split": tables.split,
        "learnt_rows": checksum_of_rows(train),
        "learnt_by": f"the training rows of {tables.split_words}",
    }


def column_choices(settings: Settings, kept: tuple[str, ...]) -> ColumnChoices:
    """How columns are read, but for those that are kept as they are."""
    data, time = settings.data, settings.split.time_column
    left_out = (*data.ignore, *kept, *data.label_columns, *filter(None, (time,)))
    return ColumnChoices(
        id=data.id_column,
        source=data.source_column,
        target=data.destination_column,
        directed=settings.model.directed,
        unknown=data.unknown,
        missing=data.missing,
        numbers=data.numbers,
        categories=data.categories,
        text=data.text,
        ignore=tuple(dict.fromkeys(left_out)),
    )


def _edge_choices(settings: Settings) -> EdgeChoices:
    model, time = settings.model, settings.split.time_column
    return EdgeChoices(model.directed, model.ports, time, settings.data.label_columns)
