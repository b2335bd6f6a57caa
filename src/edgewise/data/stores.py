"""The kinds of stores that there are, told apart by what their manifest says."""

from collections.abc import Callable
from pathlib import Path

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import inside
from edgewise.core.manifest import MANIFEST
from edgewise.core.schema import read_json
from edgewise.data import edge_store, graph_store
from edgewise.data.edge_store import EdgeStore, open_edge_store
from edgewise.data.graph_store import NODES, GraphStore, open_store
from edgewise.data.store_files import array_path, damaged

Store = GraphStore | EdgeStore
_OPENERS: dict[str, Callable[[Path], Store]] = {
    graph_store.FORMAT: open_store,
    edge_store.FORMAT: open_edge_store,
}


def is_any_store(folder: str | Path) -> bool:
    """Whether a folder is a store, perhaps a damaged one; runs have no arrays."""
    folder = Path(folder)
    names = {*graph_store.ARRAYS, *edge_store.ARRAYS}
    arrays = any(array_path(folder, name).exists() for name in names)
    return arrays and ((folder / MANIFEST).exists() or (folder / NODES).exists())


def open_any_store(folder: str | Path) -> Store:
    """Open a store of whichever kind; one that is damaged is refused."""
    folder = Path(folder)
    path = inside(folder, MANIFEST)
    try:
        format = read_json(path, {"format": str})["format"]
        if format not in _OPENERS:
            known = ", ".join(map(repr, _OPENERS))
            raise EdgewiseError(f"its format is {format!r}, and this version reads {known}")
    except (OSError, ValueError) as error:
        raise damaged(path, getattr(error, "strerror", None) or str(error)) from error
    return _OPENERS[format](folder)
