"""Tables of nodes and edges into a store whose rows are links."""

from typing import Any

import numpy as np

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import Settings
from edgewise.data.edge_importing import EdgeChoices
from edgewise.data.edge_reader import EdgeReader
from edgewise.data.store_files import checksum_of_rows
from edgewise.units.edge_row_import import EdgeRowImport, column_choices, reader_of
from edgewise.units.edge_tables import known_ends, refuse_merging
from edgewise.units.imported_tables import ImportedTables, Learnt
from edgewise.units.link_inputs import find_link_rows, refuse_target, without_times

WHAT_EDGES_ARE = "what messages go along, and one link for each pair"


def import_links(tables: ImportedTables) -> None:
    """Write the files of a store; ends, times and one column of the edges are in memory."""
    like, settings, edges = tables.like, tables.settings, tables.edges
    refuse_merging(settings, WHAT_EDGES_ARE)
    # What is asked of other tables comes after all that is there.
    known = None if like is None else without_times(reader_of(like, "links"))
    target = settings.data.target if like is None else _like_target(like, settings)
    refuse_target(target, _ends(known, settings))
    if not len(edges):
        raise EdgewiseError(f"{edges.path} has a header but no rows; add some edges")
    edges.require(*target)
    categories = (*settings.data.categories, *target)  # a type is also told with the messages
    choices = column_choices(settings.changed(categories=categories), ())
    time = settings.split.time_column if known is None else ""
    on_its_way = EdgeRowImport(tables, known, choices, time)
    importer = on_its_way.importer
    learnt: dict[str, Any] = {}
    if known is None:
        ends, times = importer.ends, on_its_way.times
        rows = np.flatnonzero((ends >= 0).all(axis=1))
        table = edges.whole(*target) if target else None
        found = find_link_rows(known_ends(ends), rows, times, table, target, settings)
        learnt = {"split": tables.split, "learnt_by": "all rows"}
        if found.learnt_rows is not None:
            learnt["learnt_rows"] = checksum_of_rows(found.learnt_rows)
            learnt["learnt_by"] = f"the training links of {tables.split_words}"
        read_as = EdgeChoices(settings.model.directed, ports=False, time=time, shown=())
        known = importer.learn_edges(found.learnt_rows, read_as)
    on_its_way.write(known, target, targets=target, unit="link", **learnt)


def _ends(known: EdgeReader | None, settings: Settings) -> tuple[str, str]:
    """The columns of the two nodes of an edge."""
    if known is not None:
        return known.tables.source, known.tables.target
    return settings.data.source_column, settings.data.destination_column


def _like_target(like: Learnt, settings: Settings) -> tuple[str, ...]:
    """The column of types that was learnt before, which is also told with the messages."""
    if settings.data.target not in ((), like.targets):
        raise EdgewiseError(
            f"{like.name} knows the types of links by {preview(like.targets) or 'no column'}, not "
            f"by {preview(settings.data.target)}; leave out --target"
        )
    return like.targets
