"""Whether the numbers of a store mean what they meant to a model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.edge_reader import EdgeReader
from edgewise.data.edge_store import EdgeStore
from edgewise.data.graph_reader import GraphReader
from edgewise.data.graph_store import GraphStore
from edgewise.data.store_files import checksum_of_rows

_WORDS = {
    "has_nodes": "whether nodes have a table",
    "ports": "numbers of parallel edges",
    "time": "the columns of times",
    "directed": "directions of edges",
    "shown": "columns that are shown with labels",
}


def check_columns(encoder: GraphReader | None, store: GraphStore) -> None:
    """Refuse a store whose numbers mean something else than those a model was trained on."""
    reader = store.info.reader
    if (encoder is None) != (reader is None):
        differ = "one of them knows no columns"
    elif encoder is None or reader is None:
        return
    else:
        differ = difference(encoder, reader)
    if differ:
        raise _refused(store.folder, differ)


def check_edge_columns(encoder: EdgeReader, store: EdgeStore, *, times: bool = True) -> None:
    """The same for a store that keeps edges as rows.

    Args:
        encoder: How the model reads tables.
        store: That was opened.
        times: Whether times are looked at.
    """
    reader = store.info.reader
    # What is shown with labels is not looked at by a model that sees none.
    optional = (*(("time",) * times), *(("shown",) * bool(encoder.shown)))
    names = ("has_nodes", "ports", "directed", *optional)
    differing = [name for name in names if getattr(encoder, name) != getattr(reader, name)]
    differ = difference(encoder.tables, reader.tables)
    if not differ and differing:
        differ = f"{', '.join(_WORDS[name] for name in differing)} differ"
    if differ:
        raise _refused(store.folder, differ)


def refuse_imported_otherwise(folder: Path, imported: Mapping[str, tuple[Any, Any]]) -> None:
    """Refuse settings that the import decided otherwise: what is said and what was, by name."""
    differing = [name for name, (said, was) in imported.items() if said != was]
    if differing:
        raise EdgewiseError(
            f"{folder} was imported with other settings of {preview(differing)}; leave them out, "
            "or import the tables again with them"
        )


def learnt_notices(store: EdgeStore, rows: np.ndarray | None) -> list[str]:
    """A sentence where columns were learnt from other rows than those of training."""
    info = store.info
    if not info.learnt_rows or rows is None or info.learnt_rows == checksum_of_rows(rows):
        return []
    return [
        f"the columns of {store.folder} were learnt from other rows than these training rows "
        f"({info.learnt_by}), perhaps from test rows of this split; import the tables again with "
        "this split"
    ]


def _refused(folder: Path, differ: str) -> EdgewiseError:
    return EdgewiseError(
        f"{folder} was not imported as the model was trained ({differ}); import its tables again "
        "with --like RUN"
    )


def difference(learnt: GraphReader, other: GraphReader) -> str:
    """What one reader reads in another way than the other, or nothing."""
    for side in ("features", "channels"):
        ours, theirs = getattr(learnt, side), getattr(other, side)
        if [column.name for column in ours] != [column.name for column in theirs]:
            names = [preview([column.name for column in columns]) for columns in (ours, theirs)]
            return f"the model has the {side} {names[0]}, the store {names[1]}"
        differing = [a.name for a, b in zip(ours, theirs, strict=True) if a != b]
        if differing:
            return f"scales, categories or words of the {side} {preview(differing)} differ"
    return "" if learnt.directed == other.directed else "edges of one have a direction"
