"""Import tables of nodes and edges into a graph store, read as training would read them."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.files import building, check_vacant
from edgewise.core.foreign import foreign_settings
from edgewise.core.presets import make_settings
from edgewise.core.registries import UNITS
from edgewise.core.settings import Settings, known, unit_named
from edgewise.data.graph_files import TABLE_ENDINGS
from edgewise.data.source import TEXT, as_text
from edgewise.data.stores import Store, is_any_store, open_any_store
from edgewise.data.table_parts import TableParts, open_parts, part_files
from edgewise.runs.folder import check_not_own
from edgewise.training.predictor import load_model
from edgewise.units.base import Unit
from edgewise.units.imported_tables import ImportedTables, Learnt, Show, Tell

_LIKE_SETTINGS = TEXT | {"target", "split_column"}


def import_graph(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    like: str | Path | None = None,
    tell: Tell = lambda _: None,
    progress: Show | None = None,
    **settings: Any,
) -> Store:
    """Import a table of nodes and one of edges into a graph store: a new folder.

    Memory is bounded by the nodes, with ``predict="edges"`` also by one column of the edges and the
    times, with ``predict="links"`` also by the ends of all edges. The result is what training on
    the same tables would read, but for the order of the edges, which stays that of the table where
    they or links are predicted.

    Args:
        data: Two tables, CSV, TSV or Parquet, or folders of such parts; or a folder that holds
            both, called ``nodes`` and ``edges``.
        out: The folder of the store.
        like: A run, a saved model or a store: columns are read as it learnt to, for prediction.
        tell: Called with each thing worth telling.
        progress: Called with what is going on, how much is done, of how much.
        settings: How columns are read, and the split from whose training rows their scales and
            categories are learnt; by their names, see ``edgewise import --help``.

    Example:
        ``ew.import_graph(["nodes.parquet", "edges.parquet"], "graph", target="risk")``
    """
    learnt, unit = (None, _unit(settings)) if like is None else _learnt(like)
    chosen = _checked(settings, unit, like)
    check_vacant(out)
    check_not_own(Path(out), "--out")
    places = _tables([data] if isinstance(data, str | Path) else data)
    show = progress or (lambda what, done, total: None)
    with building(out) as folder:
        scratch = folder / "scratch"
        scratch.mkdir()
        nodes, edges = (_opened(place, scratch, chosen, show) for place in places)
        sources = tuple(str(place) for place in places)
        unit.import_tables(
            ImportedTables(nodes, edges, sources, folder, scratch, chosen, learnt, show, tell)
        )
        shutil.rmtree(scratch)
    store = open_any_store(out)
    tell(f"{store}; {store.info.notes.changes}")
    return store


def _unit(given: dict[str, Any]) -> Unit:
    """What the rows of the store are to be."""
    predict = known(given).get("predict", "auto")
    unit: Unit = UNITS[unit_named(str(predict)) or "node"]
    return unit


def _checked(given: dict[str, Any], unit: Unit, like: str | Path | None) -> Settings:
    """The settings; one that does not apply to an import is refused."""
    takes, why = unit.import_settings, "tables are imported"
    if not takes:
        raise EdgewiseError(
            f"there is no store of {unit.plural}; a store holds one graph, of which nodes, edges "
            "or links are predicted"
        )
    if like is not None:
        takes, why = _LIKE_SETTINGS & takes, f"columns are read as {like} learnt to"
    foreign = [name for name in known(given) if name not in takes]
    if foreign:
        raise foreign_settings(foreign, why)
    return make_settings(unit.name, **known(given))


def _tables(places: Sequence[str | Path]) -> tuple[Path, Path]:
    """The places of nodes and edges."""
    if len(places) == 2:
        return Path(places[0]), Path(places[1])
    if len(places) != 1 or not Path(places[0]).is_dir():
        raise EdgewiseError(
            f"an import takes a table of nodes and one of edges, or a folder of both, not "
            f"{preview([str(place) for place in places])}"
        )
    return _in_folder(Path(places[0]), "nodes"), _in_folder(Path(places[0]), "edges")


def _in_folder(folder: Path, name: str) -> Path:
    """A table of a name in a folder: a file, or a folder of parts."""
    found = [folder / f"{name}{ending}" for ending in ("", *TABLE_ENDINGS)]
    found = [path for path in found if path.exists()]
    if len(found) != 1:
        many = f"holds {preview([p.name for p in found])}" if found else f"holds no {name} table"
        raise EdgewiseError(
            f"{folder} {many}; put one {name}.csv, {name}.tsv, {name}.parquet or a folder {name} "
            "there"
        )
    return found[0]


def _opened(place: Path, scratch: Path, settings: Settings, show: Show) -> TableParts:
    total = sum(file.stat().st_size for file in part_files(place) if file.exists())
    return open_parts(
        place,
        scratch / f"{len(list(scratch.iterdir()))}",
        **as_text(settings.data),
        show=lambda done: show(f"reading {place.name}", done, total),
    )


def _learnt(like: str | Path) -> tuple[Learnt, Unit]:
    """How the tables of a run or a store were read, and what its rows are."""
    if is_any_store(like):
        store = open_any_store(like)
        unit: Unit = UNITS[store.unit]
        return Learnt(str(like), store.info.reader, store.info.targets), unit
    model = load_model(like)
    return Learnt(str(like), model.encoder, model.unit.kept_columns(model.task)), model.unit
