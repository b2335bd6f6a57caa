"""Predict nodes or molecules with a trained model, and write a table."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from edgewise.core.errors import EdgewiseError
from edgewise.data.chemistry import read_smiles
from edgewise.data.molecule_tables import smiles_column as find_column
from edgewise.data.sources import Source, find_source
from edgewise.data.streams import Stretch, stream_table
from edgewise.fitted import Fitted, Prediction, load_model
from edgewise.jobs.new_data import Tell, check_kind, node_truth, read_graph, reading
from edgewise.jobs.table_writer import table_writer
from edgewise.predictions import Columns, predicted_columns, side_by_side
from edgewise.problems import Show, read_molecule_source
from edgewise.runs import open_run


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
        tell: Called with what was mended in the tables of a graph, and with why its labels,
            where it has any, do not stand beside the predictions.

    Returns:
        How many rows were predicted, and how many could not be.
    """
    model = reading(load_model(folder), encoding)
    source = find_source(list(data)) if data else open_run(folder).source
    check_kind(model, source, smiles_column)
    if source.form not in ("citation", "molecules") and not Path(source.places[0]).exists():
        raise EdgewiseError(f"{source} is not there any more; name the data after the run")
    if out is not None:
        source.check_not_written(out, "--out")
    with table_writer(out) as write:
        if model.kind == "nodes":
            return _predict_nodes(model, source, write, tell), 0
        return _predict_molecules(model, source, write, progress, smiles_column)


def _predict_nodes(
    model: Fitted, source: Source, write: Callable[[Columns], None], tell: Tell
) -> int:
    graph = read_graph(model, source, tell)
    names = list(graph.node_ids or map(str, range(graph.num_nodes)))
    prediction = model.predict_nodes(graph)
    columns = predicted_columns(model.task, prediction)
    if graph.y is not None:
        try:
            columns = side_by_side(model.task, prediction, node_truth(model, graph))
        except EdgewiseError as error:
            tell(f"written without the truth beside the predictions: {error}")
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
        column = find_column(stretch.table, smiles_column, model.recipe.smiles_column)
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
