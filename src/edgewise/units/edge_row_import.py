"""Tables of nodes and edges into a store that keeps edges as rows, whatever is predicted."""

from collections.abc import Sequence
from typing import Any

from edgewise.core.errors import EdgewiseError
from edgewise.core.settings import Settings
from edgewise.data.edge_importing import EdgeImporter
from edgewise.data.edge_reader import EdgeReader
from edgewise.data.edge_store import EdgeStoreInfo, write_edge_manifest
from edgewise.data.importing import ColumnChoices
from edgewise.data.times import read_times
from edgewise.units.imported_tables import ImportedTables, Learnt


class EdgeRowImport:
    """An import on its way, whose ends and times were read.

    Args:
        tables: To be imported.
        known: How they are read; None: it is to be learnt.
        choices: How columns are read.
        time: Column of times; empty: there is none.
    """

    def __init__(
        self, tables: ImportedTables, known: EdgeReader | None, choices: ColumnChoices, time: str
    ) -> None:
        self._tables = tables
        self.importer = EdgeImporter(
            tables.nodes,
            tables.edges,
            scratch=tables.scratch,
            show=tables.show,
            reader=None if known is None else known.tables,
            choices=choices,
        )
        self.importer.read_ends()
        self.times = read_times(tables.edges.whole(time), time) if time else None

    def write(self, reader: EdgeReader, kept: Sequence[str], **about: Any) -> None:
        """Write the files of the store.

        Args:
            reader: How the tables are read.
            kept: Columns of the edges that are kept as they are.
            about: What else :class:`EdgeStoreInfo` is to hold.
        """
        tables, like = self._tables, self._tables.like
        if like is not None:
            about = {**about, "learnt_by": f"as in {like.name}"}
        files, reader, notes = self.importer.write_edges(
            tables.folder, reader, kept, self.times, like=like is not None
        )
        info = EdgeStoreInfo(
            reader,
            rows=len(tables.edges),
            notes=notes,
            missing_values=tables.settings.data.missing_values,
            decimal=tables.edges.decimal,
            sources=tables.sources,
            **about,
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


def column_choices(settings: Settings, kept: Sequence[str]) -> ColumnChoices:
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
