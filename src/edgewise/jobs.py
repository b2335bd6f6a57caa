"""The jobs of the command line as functions: train, resume, predict, evaluate, compare."""

import csv
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from edgewise.data.chemistry import read_smiles
from edgewise.data.citation import load_citation
from edgewise.data.graph_files import load_graph
from edgewise.data.molecule_tables import (
    guess_smiles_column,
    is_sdf,
    left_out,
    read_structures,
)
from edgewise.data.sources import Source, find_source
from edgewise.data.streams import Stretch, stream_table
from edgewise.data.tables import Table
from edgewise.errors import EdgewiseError, preview
from edgewise.files import replacing
from edgewise.fitted import Fitted, Prediction, load_model
from edgewise.graph import Graph
from edgewise.metrics import Metrics, score
from edgewise.predictions import Columns, predicted_columns, side_by_side
from edgewise.problems import Opened, Show, open_problem, read_graph_tables, read_molecule_source
from edgewise.recipe import make_recipe
from edgewise.report import has_report, write_report
from edgewise.runs import (
    OnEpoch,
    Run,
    check_free,
    forget_untrained,
    open_run,
    reopen,
    start_run,
    train_run,
)
from edgewise.tasks import truth_of

Tell = Callable[[str], None]


def train(
    data: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    preset: str = "default",
    command: str = "",
    tell: Tell = lambda _: None,
    progress: Show | None = None,
    on_epoch: OnEpoch | None = None,
    stop: Callable[[], bool] = lambda: False,
    **settings: Any,
) -> Run:
    """Train a model on a data set, a graph or molecules, and leave a run folder.

    Args:
        data: A data set's name, a folder or two tables of a graph, or a file of molecules.
        out: The folder; without it a new one below ``runs/``.
        preset: ``"default"`` or ``"paper"``.
        command: What the report names as its origin.
        tell: Called with each thing worth telling.
        progress: Called while molecules are read.
        on_epoch: Called after each epoch with the member, the epoch and the best one so far.
        stop: Asked after each epoch whether to end with the best weights so far.
        settings: Fields of :class:`~edgewise.Recipe` that differ from the preset's.
    """
    places = [data] if isinstance(data, str | Path) else data
    source = find_source([str(place) for place in places])
    recipe = make_recipe(source.kind, preset, **settings)
    folder = reserve_folder(source.name) if out is None else Path(out)
    try:
        check_free(folder)
        opened = open_problem(source, recipe, progress)
        for note in opened.notes:
            tell(note)
        tell(f"{opened.problem.task}; {opened.problem.split}")
        run = start_run(folder, source, recipe, preset, command)
        _train_or_forget(run, opened, on_epoch, stop)
    except BaseException:
        with suppress(OSError):
            folder.rmdir()  # only where it holds nothing
        raise
    write_report(run, opened)
    return run


def resume(
    folder: str | Path,
    *,
    tell: Tell = lambda _: None,
    progress: Show | None = None,
    on_epoch: OnEpoch | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Run:
    """Go on with a run that was killed or interrupted; it ends as if nothing had happened."""
    run = open_run(folder)
    if run.finished:
        tell(f"{run.folder} is finished already")
        if not has_report(run):
            write_report(run)
        return run
    opened = reopen(run, progress)
    train_run(run, opened, on_epoch, stop)
    write_report(run, opened)
    return run


def _train_or_forget(
    run: Run, opened: Opened, on_epoch: OnEpoch | None, stop: Callable[[], bool]
) -> None:
    try:
        train_run(run, opened, on_epoch, stop)
    except EdgewiseError:
        if not stop():
            forget_untrained(run)  # settings that make no model
        raise


def reserve_folder(name: str) -> Path:
    """Make ``runs/NAME``, or the first of ``runs/NAME-2``, ``runs/NAME-3`` that is free."""
    number, folder = 1, Path("runs") / name
    try:
        folder.parent.mkdir(exist_ok=True)
        while True:
            try:
                folder.mkdir()
            except FileExistsError:
                number += 1
                folder = Path("runs") / f"{name}-{number}"
            else:
                return folder
    except OSError as error:
        raise EdgewiseError(
            f"cannot make {folder} ({error.strerror}); choose a place with --out"
        ) from error


def predict(
    folder: str | Path,
    data: Sequence[str] = (),
    out: str | Path | None = None,
    progress: Show | None = None,
    *,
    smiles_column: str = "",
    encoding: str = "",
    tell: Tell = lambda _: None,
) -> tuple[int, int]:
    """Predict nodes or molecules, and write them in their order.

    Args:
        folder: Of a run, or of a saved model.
        data: As for training; without it the data of the run.
        out: A ``.csv`` or ``.tsv`` file; without it the standard output.
        progress: Called with what is going on, how much is done and of how much.
        smiles_column: Of the new molecules; without it that of the training, or one that is
            called so.
        encoding: Of new text files, if it is not that of the training.
        tell: Called with what was mended in the tables of a graph.

    Returns:
        How many rows were predicted, and how many could not be.
    """
    model = _reading(load_model(folder), encoding)
    source = find_source(list(data)) if data else open_run(folder).source
    _check_kind(model, source, smiles_column)
    if source.form not in ("citation", "molecules") and not Path(source.places[0]).exists():
        raise EdgewiseError(f"{source} is not there any more; name the data after the run")
    if out is not None:
        source.check_not_written(out, "--out")
    with _table_writer(out) as write:
        if model.kind == "nodes":
            return _predict_nodes(model, source, write, tell), 0
        return _predict_molecules(model, source, write, progress, smiles_column)


def _reading(model: Fitted, encoding: str) -> Fitted:
    """The model, reading text files of this encoding."""
    recipe = replace(model.recipe, encoding=encoding or model.recipe.encoding)
    return replace(model, recipe=recipe)


def _predict_nodes(
    model: Fitted, source: Source, write: Callable[[Columns], None], tell: Tell
) -> int:
    graph = read_graph(model, source, tell)
    names = list(graph.node_ids or map(str, range(graph.num_nodes)))
    prediction = model.predict_nodes(graph)
    if graph.y is None:
        columns = predicted_columns(model.task, prediction)
    else:
        columns = side_by_side(model.task, prediction, _node_truth(model, graph))
    write({"id": names, **columns})
    return graph.num_nodes


def _predict_molecules(
    model: Fitted,
    source: Source,
    write: Callable[[Columns], None],
    progress: Show | None,
    smiles_column: str,
) -> tuple[int, int]:
    good = bad = 0
    for stretch, size in _stretches(model, source):
        column = _smiles_column(model, stretch.table, smiles_column)
        columns, count = _predicted_stretch(model, stretch, column)
        good, bad = good + count, bad + len(stretch.table) - count
        write(columns)
        if progress is not None:
            progress(f"{good + bad:,} molecules", stretch.done, size)
    return good, bad


def _stretches(model: Fitted, source: Source) -> Iterator[tuple[Stretch, int | None]]:
    if source.form == "molecules":
        table = read_molecule_source(source, model.recipe).table
        yield Stretch(table, {}, 1), 1
        return
    size = Path(source.places[0]).stat().st_size
    for stretch in stream_table(source.places[0], encoding=model.recipe.encoding):
        yield stretch, size


def _smiles_column(model: Fitted, table: Table, named: str) -> str:
    if is_sdf(table.path):
        return "smiles"
    known = model.recipe.smiles_column
    return named or (known if known in table.columns else guess_smiles_column(table))


def _predicted_stretch(model: Fitted, stretch: Stretch, column: str) -> tuple[Columns, int]:
    """The rows as they are, with predictions and errors behind them."""
    table = stretch.table
    smiles = ["" if i in stretch.broken else cell for i, cell in enumerate(table.column(column))]
    codes = read_smiles(smiles)
    error = {row: reason for row, _, reason in codes.invalid} | stretch.broken
    width = model.task.width
    prediction = (
        model.predict_molecules(codes)
        if len(codes)
        else Prediction(
            np.zeros((0, width)), np.zeros((0, width)) if len(model.members) > 1 else None
        )
    )
    columns: Columns = {name: list(cells) for name, cells in table.columns.items()}
    predicted = predicted_columns(model.task, prediction)
    for name in (*predicted, "error"):
        if name in columns:
            raise EdgewiseError(
                f"{table.path} has a column {name!r} already, which the predictions need; rename it"
            )
    for name, cells in predicted.items():
        columns[name] = [""] * len(table)
        for row, cell in zip(codes.rows.tolist(), cells, strict=True):
            columns[name][row] = cell
    columns["error"] = [error.get(row, "") for row in range(len(table))]
    return columns, len(codes)


def evaluate(
    folder: str | Path,
    data: Sequence[str] = (),
    progress: Show | None = None,
    *,
    smiles_column: str = "",
    encoding: str = "",
    tell: Tell = lambda _: None,
) -> Metrics:
    """Metrics of a model: on each part of its own data, or on other data with the truth in them.

    Args:
        folder: Of a run, or of a saved model.
        data: As for training; without it the data of the run.
        progress: Called with what is going on, how much is done and of how much.
        smiles_column: Of other molecules, if it is not that of the training.
        encoding: Of other text files, if it is not that of the training.
        tell: Called with what was mended in a graph, or left out of the molecules.
    """
    model = _reading(load_model(folder), encoding)
    if not data:
        problem = reopen(open_run(folder), progress).problem
        prediction, truth = model.predict_problem(problem).mean, problem.truth.numpy()
        return {
            name: score(problem.task, prediction[rows.numpy()], truth[rows.numpy()])
            for name, rows in problem.split.parts().items()
        }
    source = find_source(list(data))
    _check_kind(model, source, smiles_column)
    if model.kind == "nodes":
        graph = read_graph(model, source, tell)
        metrics = score(model.task, model.predict_nodes(graph).mean, _node_truth(model, graph))
        return _of_some_rows(metrics, source)
    column = smiles_column or model.recipe.smiles_column
    rows = read_molecule_source(source, replace(model.recipe, smiles_column=column))
    known = truth_of(model.task, rows.table)
    codes, invalid = read_structures(rows, on_invalid="skip", progress=progress)
    if invalid:
        tell(left_out(invalid, len(rows)))
    of_molecule = known[torch.from_numpy(codes.rows)].numpy()
    metrics = score(model.task, model.predict_molecules(codes).mean, of_molecule)
    return _of_some_rows(metrics, source)


def _of_some_rows(metrics: Metrics, source: Source) -> Metrics:
    if not metrics["rows"]:
        raise EdgewiseError(f"{source} holds no known target to compare with; fill its column")
    return metrics


def read_graph(model: Fitted, source: Source, tell: Tell) -> Graph:
    """A graph as the model reads it; the label column may be absent."""
    if source.form == "citation":
        return load_citation(source.places[0])[0]
    if source.form == "graph":
        return load_graph(source.places[0])
    if model.reader is None:
        raise EdgewiseError(
            "this model was not trained on tables, so it cannot read them; give a data set's name "
            "or a .safetensors graph with the same columns"
        )
    nodes, edges, _ = read_graph_tables(source, model.recipe.encoding)
    graph, notes = model.reader.read(nodes, edges)
    if notes.mended:
        tell(str(notes))
    return graph


def _node_truth(model: Fitted, graph: Graph) -> np.ndarray:
    """The labels of a graph as the model numbers them: by the names of the classes."""
    if graph.y is None:
        raise EdgewiseError("the graph has no labels to compare with; give the label column")
    task, labels = model.task, graph.y.numpy()
    if (task.kind == "classification") == graph.y.is_floating_point():
        held = "values" if graph.y.is_floating_point() else "class numbers"
        raise EdgewiseError(f"the labels of the graph are {held}, but the model learnt {task}")
    if task.kind != "classification":
        return labels.reshape(-1, 1)
    names = graph.class_names or tuple(map(str, range(labels.max(initial=-1) + 1)))
    present = [names[number] for number in np.unique(labels[labels >= 0])]
    strangers = [name for name in present if name not in task.classes]
    if strangers:
        raise EdgewiseError(
            f"the model does not know the class(es) {preview(strangers)}; it learnt "
            f"{preview(task.classes)}, so give the graph class_names such as these"
        )
    numbers = [task.classes.index(name) if name in task.classes else -1 for name in names]
    return np.array([*numbers, -1])[labels]  # -1, unknown, finds the last


def _check_kind(model: Fitted, source: Source, smiles_column: str) -> None:
    if model.kind != source.kind:
        words = {"nodes": "nodes of a graph", "molecules": "molecules"}
        raise EdgewiseError(
            f"the model predicts {words[model.kind]}, but {source} holds {words[source.kind]}; "
            "give data of the same kind"
        )
    if smiles_column and model.kind == "nodes":
        raise EdgewiseError(f"nodes have no SMILES; leave out smiles_column = {smiles_column!r}")


@contextmanager
def _table_writer(out: str | Path | None) -> Iterator[Callable[[Columns], None]]:
    """A function that writes stretches of one table; the file appears when all is written."""
    header: list[str] = []

    def writing(stream: Any, delimiter: str) -> Callable[[Columns], None]:
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")

        def write(columns: Columns) -> None:
            if not header:
                header.extend(columns)
                writer.writerow(header)
            writer.writerows(zip(*(columns[name] for name in header), strict=True))

        return write

    if out is None:
        with _bytes_as_read(sys.stdout) as text:
            yield writing(text, ",")
        return
    if Path(out).suffix not in (".csv", ".tsv"):
        raise EdgewiseError(f"{out} does not end in .csv or .tsv; name the file so")
    with replacing(out) as binary, _text_over(binary) as text:
        yield writing(text, "\t" if Path(out).suffix == ".tsv" else ",")


@contextmanager
def _text_over(binary: Any) -> Iterator[io.TextIOWrapper]:
    """UTF-8 over a stream of bytes; what was no text when it was read is written as it was."""
    text = io.TextIOWrapper(binary, "utf-8", errors="surrogateescape", newline="")
    try:
        yield text
    finally:
        text.flush()
        text.detach()


@contextmanager
def _bytes_as_read(stream: Any) -> Iterator[Any]:
    """A stream such as the standard output, by its bytes where it has them."""
    if not hasattr(stream, "buffer"):  # a notebook's
        yield stream
        return
    stream.flush()
    with _text_over(stream.buffer) as text:
        yield text
