"""Predict with a trained model, and write a table."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from edgewise.data.tables import read_table
from edgewise.runs.folder import check_not_own, open_run, reopen
from edgewise.runs.new_data import model_and_data
from edgewise.runs.table_writer import table_writer
from edgewise.units.base import Asked, Show, Tell


def predict(
    folder: str | Path,
    data: Sequence[str] = (),
    out: str | Path | None = None,
    progress: Show | None = None,
    *,
    smiles_column: str = "",
    encoding: str = "",
    device: str = "",
    raw_cells: bool = False,
    distance: bool = True,
    pairs: str | Path | None = None,
    top: int = 0,
    ids: str | Path | None = None,
    tell: Tell = lambda _: None,
) -> tuple[int, int]:
    """Predict rows, and write them in their order.

    Args:
        folder: Of a run, or of a saved model.
        data: As for training; without it the data of the run.
        out: A ``.csv`` or ``.tsv`` file; without it the standard output.
        progress: Called with what is going on, how much is done and of how much.
        smiles_column: Of the new molecules; without it that of the training, or one that is
            called so.
        encoding: Of new text files, if it is not that of the training.
        device: Where to predict; without it as in training.
        raw_cells: Write text as it is; without it, text that a spreadsheet would run as a formula
            gets a single quote in front.
        distance: For molecules, say how far each is from those of training.
        pairs: Table of pairs of nodes that a model of links is to score.
        top: How many of the likeliest links of each node it is to give.
        ids: Table of the nodes in question; without it all.
        tell: Called with what was changed in reading the tables of a graph, and with why its
            labels, where it has any, do not stand beside the predictions.

    Returns:
        How many rows were predicted, and how many could not be.
    """
    model, source = model_and_data(folder, data, smiles_column, encoding, device)
    if not distance:
        model = replace(model, reference=None)
    if out is not None:
        source.check_not_written(out, "--out")
        check_not_own(Path(out), "--out")
    if pairs is not None or top:
        tables = [None if one is None else read_table(one) for one in (pairs, ids)]
        good = 0
        with table_writer(out, raw_cells=raw_cells) as write:
            for some in model.unit.scored(model, source, pairs=tables[0], top=top, ids=tables[1]):
                write(some.columns)
                good += some.good
        return good, 0
    if not data and model.unit.needs_split(model.settings):
        # Which labels and edges may be seen is the split's to say.
        problem = reopen(open_run(folder).on(device), progress).problem
        prediction = model.predict(problem.data)
        columns = model.task.compared_columns(prediction, problem.truth.numpy())
        with table_writer(out, raw_cells=raw_cells) as write:
            write({**model.unit.row_columns(problem), **columns})
        return len(problem.truth), 0
    good = bad = 0
    with table_writer(out, raw_cells=raw_cells) as write:
        for some in model.unit.predicted(model, source, Asked(smiles_column, progress, tell)):
            write(some.columns)
            good, bad = good + some.good, bad + some.bad
    return good, bad
