"""Tables of nodes and edges into a store whose rows are edges."""

from typing import Any

import numpy as np
import torch

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import Settings
from edgewise.data.edge_importing import EdgeChoices
from edgewise.data.store_files import checksum_of_rows
from edgewise.tasks.reading import find_task, guessed_targets
from edgewise.units.base import known_rows
from edgewise.units.edge_row_import import EdgeRowImport, column_choices, reader_of
from edgewise.units.edge_tables import refuse_merging, split_of_edges, without_unknown_ends
from edgewise.units.imported_tables import ImportedTables


def import_edges(tables: ImportedTables) -> None:
    """Write the files of a store; of the edges, one column at a time is in memory."""
    like, settings = tables.like, tables.settings
    refuse_merging(settings, "the rows here")
    known = None if like is None else reader_of(like, "edges")
    targets = _targets(tables)
    split_column = settings.split.split_column
    kept = tuple(dict.fromkeys((*targets, *filter(None, (split_column,)))))
    time = settings.split.time_column if known is None else known.time
    on_its_way = EdgeRowImport(tables, known, column_choices(settings, kept), time)
    importer = on_its_way.importer
    learnt: dict[str, Any] = {}
    if known is None:
        times, unknown = on_its_way.times, importer.unknown
        rows, learnt = _training_rows(tables, targets, kept, unknown, times)
        known = importer.learn_edges(rows, _edge_choices(settings))
    on_its_way.write(
        known,
        kept,
        targets=targets,
        split_column=split_column,
        ports=settings.model.ports if like is None else known.ports,
        categories=tuple(name for name in targets if name in settings.data.categories),
        **learnt,
    )


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


def _edge_choices(settings: Settings) -> EdgeChoices:
    model, time = settings.model, settings.split.time_column
    return EdgeChoices(model.directed, model.ports, time, settings.data.label_columns)
