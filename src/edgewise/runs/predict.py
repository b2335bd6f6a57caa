"""Predict with a trained model, and write a table."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from edgewise.core.errors import EdgewiseError
from edgewise.data.sources import Source
from edgewise.data.tables import read_table
from edgewise.runs.folder import check_not_own, open_run, reopen
from edgewise.runs.new_data import model_and_data
from edgewise.runs.process_engine import predicted_by_processes
from edgewise.runs.table_writer import table_writer
from edgewise.tasks.prediction import stretches
from edgewise.training.predictor import Predictor
from edgewise.units.base import Asked, Predicted, Show, Tell

Engine = Callable[[Predictor, Source, Asked, int | None], Generator[Predicted]]


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
    engine: str = "local",
    workers: int | None = None,
    tell: Tell = lambda _: None,
) -> tuple[int, int]:
    """Predict rows, and write them in their order.

    Args:
        folder: Of a run, or of a saved model.
        data: As for training; without it the data of the run.
        out: A ``.csv``, ``.tsv`` or ``.parquet`` file, or a folder, whose name has no ending, for
            parts in Parquet; without it the standard output.
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
        engine: ``"local"``, this machine, or ``"ray"``, the workers of a Ray cluster, for files of
            molecules: that of ``RAY_ADDRESS``, or one on this machine.
        workers: How many processes predict a file of molecules on the CPU; 0: as many as there are
            processors, on this machine 8 at most and if it is long; None: this one, or of Ray as
            many as there are processors. More than one on this machine need the usual
            ``if __name__ == "__main__":`` of a script.
        tell: Called with what was changed in reading the tables of a graph, and with why its
            labels, where it has any, do not stand beside the predictions.

    Returns:
        How many rows were predicted, and how many could not be.
    """
    if engine not in ENGINES:
        raise EdgewiseError(f"there is no engine {engine!r}; choose one of {', '.join(ENGINES)}")
    if workers is not None and workers < 0:
        raise EdgewiseError(f"workers = {workers} is no number of processes; give 0 or more")
    if pairs is not None and (top or ids is not None):
        raise EdgewiseError("pairs are scored as they are; leave out --pairs, or --top and --for")
    if ids is not None and not top:
        raise EdgewiseError("--for names nodes whose likeliest links --top 10 asks for; give both")
    model, source = model_and_data(folder, data, smiles_column, encoding, device)
    if not distance:
        model = replace(model, reference=None)
    if out is not None:
        source.check_not_written(out, "--out")
        check_not_own(Path(out), "--out")
    scored = pairs is not None or bool(top)
    as_trained = not scored and not data and model.unit.needs_split(model.settings)
    if (scored or as_trained) and (engine != "local" or workers):
        raise EdgewiseError(
            "these rows are predicted in this process; leave out --engine and --workers"
        )
    if scored:
        tables = [None if one is None else read_table(one) for one in (pairs, ids)]
        good = 0
        with table_writer(out, raw_cells=raw_cells) as write:
            for some in model.unit.scored(model, source, pairs=tables[0], top=top, ids=tables[1]):
                write(some.columns, some.table)
                good += some.good
        return good, 0
    if as_trained:
        # Which labels and edges may be seen is the split's to say.
        problem = reopen(open_run(folder).on(device), progress).problem
        prediction, truth = model.predict(problem.data), problem.truth.numpy()
        with table_writer(out, raw_cells=raw_cells) as write:
            for part in stretches(len(truth)):
                columns = model.task.compared_columns(prediction.of_rows(part), truth[part])
                write({**model.unit.row_columns(problem, part), **columns}, None)
        return len(truth), 0
    rows = ENGINES[engine](model, source, Asked(smiles_column, progress, tell), workers)
    good = bad = 0
    with closing(rows), table_writer(out, raw_cells=raw_cells) as write:
        for some in rows:
            write(some.columns, some.table)
            good, bad = good + some.good, bad + some.bad
            if progress is not None and some.size:
                progress(f"{good + bad:,} rows", some.done, some.size)
    return good, bad


def _on_this_machine(
    model: Predictor, source: Source, asked: Asked, workers: int | None
) -> Generator[Predicted]:
    """By this process, or by several where that is asked for and rows can be predicted apart."""
    if workers is not None and source.by_rows and model.device.type == "cpu":
        return predicted_by_processes(model, source, asked, workers)
    if workers:
        model.unit.stretches(model.settings, source)  # says that there are none
        raise EdgewiseError("--workers is for the CPU; leave it out, or give --device cpu")
    return (some for some in model.unit.predicted(model, source, asked))


def _by_ray(
    model: Predictor, source: Source, asked: Asked, workers: int | None
) -> Generator[Predicted]:
    from edgewise.runs.ray_engine import predicted_by_ray  # an extra, and slow to import

    return predicted_by_ray(model, source, asked, workers or 0)


ENGINES: dict[str, Engine] = {"local": _on_this_machine, "ray": _by_ray}
