"""Import tables of nodes and edges into a graph store, read as training would read them."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.files import building, check_vacant
from edgewise.core.foreign import foreign_settings
from edgewise.core.presets import make_settings
from edgewise.core.settings import IMPORT_SETTINGS, Settings, known
from edgewise.data.graph_files import TABLE_ENDINGS
from edgewise.data.graph_reader import GraphReader
from edgewise.data.graph_store import (
    GraphStore,
    StoreInfo,
    checksum_of_rows,
    is_store,
    open_store,
    write_store_manifest,
)
from edgewise.data.importing import ColumnChoices, Importer
from edgewise.data.source import TEXT, as_text
from edgewise.data.table_parts import TableParts, open_parts, part_files
from edgewise.runs.folder import check_not_own
from edgewise.tasks.reading import find_task, guessed_targets
from edgewise.training.predictor import load_model
from edgewise.units.base import Show, Tell, known_rows
from edgewise.units.node_tables import node_split

_LIKE_SETTINGS = TEXT | {"target", "split_column"}


def import_graph(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    like: str | Path | None = None,
    tell: Tell = lambda _: None,
    progress: Show | None = None,
    **settings: Any,
) -> GraphStore:
    """Import a table of nodes and one of edges into a graph store: a new folder.

    Memory is bounded by the nodes, not by the edges. The result is what training on the same
    tables would read, but for the order of the edges.

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
    chosen = _checked(settings, like)
    model = None if like is None else _learnt(like)
    check_vacant(out)
    check_not_own(Path(out), "--out")
    places = _tables([data] if isinstance(data, str | Path) else data)
    show = progress or (lambda what, done, total: None)
    with building(out) as folder:
        scratch = folder / "scratch"
        scratch.mkdir()
        nodes, edges = (_opened(place, scratch, chosen, show) for place in places)
        kept = _kept_columns(nodes, chosen, model)
        rows, learnt = (None, {}) if model else _training_rows(nodes, kept, chosen, tell)
        importer = Importer(
            nodes,
            edges,
            scratch=scratch,
            show=show,
            reader=None if model is None else model.reader,
            choices=_choices(chosen, kept),
        )
        importer.read_ends()
        reader = importer.learn(rows)
        files, notes = importer.write(folder, kept.columns)
        info = StoreInfo(
            features=reader.feature_names,
            channels=reader.channel_names,
            id_column=reader.id,
            targets=kept.targets,
            split_column=kept.split,
            reader=reader,
            notes=notes,
            categories=tuple(name for name in kept.targets if name in chosen.data.categories),
            missing_values=chosen.data.missing_values,
            decimal=nodes.decimal,
            sources=tuple(str(place) for place in places),
            **(learnt or {"learnt_by": f"as in {like}"}),
        )
        write_store_manifest(folder, files, info)
        del importer
        shutil.rmtree(scratch)
    store = open_store(out)
    graph = store.graph
    tell(
        f"{graph.num_nodes:,} nodes with {graph.num_features} features, {graph.num_edges:,} edges "
        f"with {graph.num_channels} channels; {notes.changes}"
    )
    return store


@dataclass(frozen=True)
class _Kept:
    """Columns of nodes that stay as they are."""

    targets: tuple[str, ...]
    split: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.targets, *filter(None, (self.split,)))


@dataclass(frozen=True)
class _Learnt:
    """What a run or a store learnt about its columns."""

    reader: GraphReader
    targets: tuple[str, ...]


def _checked(given: dict[str, Any], like: str | Path | None) -> Settings:
    """The settings; one that does not apply to an import is refused."""
    takes, why = IMPORT_SETTINGS, "tables are imported"
    if like is not None:
        takes, why = _LIKE_SETTINGS, f"columns are read as {like} learnt to"
    foreign = [name for name in known(given) if name not in takes]
    if foreign:
        raise foreign_settings(foreign, why)
    return make_settings("node", **known(given))


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


def _learnt(like: str | Path) -> _Learnt:
    if is_store(like):
        info = open_store(like).info
        reader, targets = info.reader, info.targets
    else:
        model = load_model(like)
        reader, targets = model.encoder, model.task.names
    if not isinstance(reader, GraphReader):
        raise EdgewiseError(
            f"{like} did not learn how tables of nodes and edges are read; name a run on nodes, or "
            "a store"
        )
    return _Learnt(replace(reader, labels=None), tuple(targets))


def _kept_columns(nodes: TableParts, settings: Settings, model: _Learnt | None) -> _Kept:
    targets = settings.data.target
    if model is not None:
        targets = targets or tuple(name for name in model.targets if name in nodes.columns)
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


def _training_rows(
    nodes: TableParts, kept: _Kept, settings: Settings, tell: Tell
) -> tuple[np.ndarray | None, dict[str, Any]]:
    """The rows to learn from, and what a store says about them."""
    data, said = settings.data, settings.split
    split: dict[str, Any] = {"split": said.split, "stratify": said.stratify}
    seed = settings.training.seed if said.split_seed is None else said.split_seed
    split |= {"split_seed": seed, "split_column": said.split_column}
    if not kept.targets:
        return None, {"learnt_by": "all rows"}
    if not data.target:
        tell(f"keeping column {kept.targets[0]!r} to be predicted, because of its name")
    table = nodes.whole(*kept.columns)
    task, truth = find_task(table, kept.targets, data.task, data.categories)
    train = known_rows(node_split(settings, task, truth, table), task, truth).train.numpy()
    if data.fit_on == "all":
        return None, {"split": split, "learnt_by": "all rows"}
    words = f"--split-column {said.split_column}"
    if not said.split_column:
        words = f"--split {said.split}{' --stratify' * said.stratify} --split-seed {seed}"
    return train, {
        "split": split,
        "learnt_rows": checksum_of_rows(train),
        "learnt_by": f"the training rows of {words}",
    }


def _choices(settings: Settings, kept: _Kept) -> ColumnChoices:
    data = settings.data
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
