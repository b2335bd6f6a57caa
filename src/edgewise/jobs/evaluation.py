"""Compare what a trained model says with the truth."""

from collections.abc import Sequence
from pathlib import Path

import torch

from edgewise.core.errors import EdgewiseError
from edgewise.data.molecule_tables import (
    MoleculeTable,
    left_out,
    read_molecules,
    read_named,
    read_structures,
)
from edgewise.data.sources import Source, find_source
from edgewise.fitted import Fitted, load_model
from edgewise.jobs.new_data import Tell, check_kind, node_truth, read_graph, reading
from edgewise.metrics import Metrics, score
from edgewise.problems import Show
from edgewise.runs import open_run, reopen
from edgewise.tasks import truth_of


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
    model = reading(load_model(folder), encoding)
    if not data:
        problem = reopen(open_run(folder), progress).problem
        prediction, truth = model.predict_problem(problem).mean, problem.truth.numpy()
        return {
            name: score(problem.task, prediction[rows.numpy()], truth[rows.numpy()])
            for name, rows in problem.split.parts().items()
        }
    source = find_source(list(data))
    check_kind(model, source, smiles_column)
    if model.kind == "nodes":
        graph = read_graph(model, source, tell)
        metrics = score(model.task, model.predict_nodes(graph).mean, node_truth(model, graph))
        return _of_some_rows(metrics, source)
    rows = _molecules(model, source, smiles_column)
    known = truth_of(model.task, rows.table)
    codes, invalid = read_structures(rows, on_invalid="skip", progress=progress)
    if invalid:
        tell(left_out(invalid, len(rows)))
    of_molecule = known[torch.from_numpy(codes.rows)].numpy()
    metrics = score(model.task, model.predict_molecules(codes).mean, of_molecule)
    return _of_some_rows(metrics, source)


def _molecules(model: Fitted, source: Source, smiles_column: str) -> MoleculeTable:
    if source.form == "molecules":
        return read_named(source.places[0])
    return read_molecules(
        source.places[0],
        smiles=smiles_column or None,
        usual=model.recipe.smiles_column,
        encoding=model.recipe.encoding,
    )


def _of_some_rows(metrics: Metrics, source: Source) -> Metrics:
    if not metrics["rows"]:
        raise EdgewiseError(f"{source} holds no known target to compare with; fill its column")
    return metrics
