"""Tables of nodes and edges into a store whose rows are links."""

from typing import Any

import numpy as np

from edgewise.core.errors import EdgewiseError
from edgewise.data.edge_importing import EdgeChoices, EdgeImporter
from edgewise.data.edge_store import EdgeStoreInfo, write_edge_manifest
from edgewise.data.store_files import checksum_of_rows
from edgewise.data.times import read_times
from edgewise.units.edge_import import column_choices, reader_of
from edgewise.units.edge_tables import known_ends, refuse_merging
from edgewise.units.imported_tables import ImportedTables
from edgewise.units.link_inputs import find_link_rows, refuse_target

MERGED = "what messages go along, and one link for each pair"


def import_links(tables: ImportedTables) -> None:
    """Write the files of a store; in memory are the ends of the edges and one column of them."""
    like, settings, edges = tables.like, tables.settings, tables.edges
    refuse_merging(settings, MERGED)
    known = None if like is None else reader_of(like, "links")
    target = settings.data.target or (() if like is None else like.targets)
    if like is not None:
        target = tuple(name for name in target if name in edges.columns)
    refuse_target(target, settings.data.source_column, settings.data.destination_column)
    if not len(edges):
        raise EdgewiseError(f"{edges.path} has a header but no rows; add some edges")
    edges.require(*target)
    categories = (*settings.data.categories, *target)  # a type is also told with the messages
    importer = EdgeImporter(
        tables.nodes,
        edges,
        scratch=tables.scratch,
        show=tables.show,
        reader=None if known is None else known.tables,
        choices=column_choices(settings.changed(categories=categories), ()),
    )
    importer.read_ends()
    time = settings.split.time_column if known is None else known.time
    times = read_times(edges.whole(time), time) if time else None
    learnt: dict[str, Any] = {"learnt_by": f"as in {like.name}" if like else ""}
    if known is None:
        ends = importer.ends
        rows = np.flatnonzero((ends >= 0).all(axis=1))
        table = edges.whole(*target)
        found = find_link_rows(known_ends(ends), rows, times, table, target, settings)
        learnt = {"split": tables.split, "learnt_by": "all rows"}
        if found.learnt_rows is not None:
            learnt["learnt_rows"] = checksum_of_rows(found.learnt_rows)
            learnt["learnt_by"] = f"the training links of {tables.split_words}"
        choices = EdgeChoices(settings.model.directed, ports=False, time=time, shown=())
        known = importer.learn_edges(found.learnt_rows, choices)
    files, reader, notes = importer.write_edges(
        tables.folder, known, target, times, like=like is not None
    )
    info = EdgeStoreInfo(
        reader,
        rows=len(edges),
        targets=target,
        notes=notes,
        missing_values=settings.data.missing_values,
        decimal=edges.decimal,
        sources=tables.sources,
        unit="link",
        **learnt,
    )
    write_edge_manifest(tables.folder, files, info)
