"""From a data set, files or a folder to a problem, and what the user should be told about it."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.recipe import Recipe
from edgewise.data.citation import load_citation
from edgewise.data.graph_files import load_graph, read_folder, read_graphml
from edgewise.data.graph_tables import learn_graph_reader
from edgewise.data.molecule_tables import (
    InvalidRow,
    MoleculeTable,
    left_out,
    read_molecules,
    read_named,
    read_structures,
)
from edgewise.data.sources import Source
from edgewise.data.tables import Table, read_table
from edgewise.graphs.channels import go_both_ways
from edgewise.graphs.graph import Graph
from edgewise.problems.problem import Problem, molecule_problem, node_problem
from edgewise.problems.splitting import molecule_split, node_split
from edgewise.tasks import Task, guess_task

Show = Callable[[str, int, int | None], None]  # what is going on, how much is done, of how much
_LABEL_NAMES = ("label", "class", "y")


@dataclass(frozen=True, eq=False)
class Opened:
    """A problem as it was opened, and what the user should be told about it."""

    problem: Problem
    notes: tuple[str, ...]
    invalid: tuple[InvalidRow, ...] = ()  # molecules that could not be read


def open_problem(source: Source, recipe: Recipe, progress: Show | None = None) -> Opened:
    """Read data, find out what is to be learnt, and draw the split."""
    if source.kind == "molecules":
        return _open_molecules(source, recipe, progress)
    return _open_nodes(source, recipe)


def read_graph_tables(source: Source, encoding: str) -> tuple[Table, Table, bool]:
    """The nodes table, the edges table, and whether its form says that edges are directed."""
    if source.form == "graphml":
        return read_graphml(source.places[0])
    if source.form == "folder":
        return (*read_folder(source.places[0], encoding=encoding), True)
    nodes, edges = (read_table(place, encoding=encoding) for place in source.places)
    return nodes, edges, True


def read_molecule_source(source: Source, recipe: Recipe) -> MoleculeTable:
    """The rows of a molecule file or data set."""
    if source.form == "molecules":
        return read_named(source.places[0])
    return read_molecules(
        source.places[0], smiles=recipe.smiles_column or None, encoding=recipe.encoding
    )


def _open_nodes(source: Source, recipe: Recipe) -> Opened:
    if recipe.task == "multilabel":
        raise EdgewiseError("nodes have one target; set task = classification or regression")
    notes: list[str] = []
    table = reader = None
    if source.form == "citation":
        graph, found = load_citation(source.places[0])
        notes.append(str(found))
        target = "class"
    elif source.form == "graph":
        graph = load_graph(source.places[0])
        target = "y"
    else:
        table, edges, directed = read_graph_tables(source, recipe.encoding)
        target = _label_column(table, recipe.target)
        if target not in recipe.target:
            notes.append(f"predicting column {target!r}, because of its name")
        reader = learn_graph_reader(
            table,
            edges,
            id=recipe.id_column,
            label=target,
            task=None if recipe.task == "auto" else recipe.task,
            numbers=recipe.numbers,
            categories=recipe.categories,
            text=recipe.text,
            ignore=(*recipe.ignore, *filter(None, (recipe.split_column,))),
            source=recipe.source_column,
            target=recipe.target_column,
            directed=directed and recipe.edges == "directed",
            missing=recipe.missing,
            unknown=recipe.unknown,
            duplicates=recipe.duplicates,
        )
        graph, read = reader.read(table, edges)
        notes.append(str(read))
    if recipe.directed and graph.num_edges and go_both_ways(graph.edge_index, graph.edge_attr):
        notes.append(
            "every edge goes both ways with the same values, so there is no direction to learn "
            "from; --no-directed makes one channel of each column, in place of three"
        )
    task = _node_task(graph, target, recipe.task)
    assert graph.y is not None
    truth = graph.y if task.kind == "classification" else graph.y.reshape(-1, 1)
    split = node_split(recipe, task, truth, table)
    return Opened(node_problem(graph, task, split, recipe, reader), (str(graph), *notes))


def _open_molecules(source: Source, recipe: Recipe, progress: Show | None) -> Opened:
    rows = read_molecule_source(source, recipe)
    if not len(rows):
        raise EdgewiseError(f"{rows.table.path} has a header but no rows; add some")
    names = recipe.target or rows.target_names
    if len(set(names)) < len(names):
        raise EdgewiseError(f"a target is named twice in {preview(names)}; name each once")
    notes = []
    if not names:
        names = (_only_column(rows),)
        notes.append(f"predicting column {names[0]!r}, the only one beside the SMILES")
    task, truth = guess_task(rows.table, tuple(names), recipe.task)
    codes, invalid = read_structures(rows, on_invalid=recipe.on_invalid, progress=progress)
    truth = truth[torch.from_numpy(codes.rows)]
    if invalid:
        notes.append(left_out(invalid, len(rows)))
    split = molecule_split(recipe, task, truth, rows, codes)
    problem = molecule_problem(codes, task, truth, split, recipe)
    return Opened(problem, (str(problem.molecules), *notes), invalid)


def _label_column(table: Table, given: tuple[str, ...]) -> str:
    if len(given) == 1:
        return given[0]
    if given:
        raise EdgewiseError(f"nodes have one target, not {len(given)}; train one model for each")
    found = [name for name in table.columns if name.lower() in _LABEL_NAMES]
    if len(found) != 1:
        raise EdgewiseError(
            f"{table.path}: name the column to be predicted with --target; its columns are "
            f"{preview(list(table.columns), limit=12)}"
        )
    return found[0]


def _only_column(rows: MoleculeTable) -> str:
    others = [
        name
        for name, cells in rows.table.columns.items()
        if tuple(cell.strip() for cell in cells) != rows.smiles
    ]
    if len(others) != 1:
        raise EdgewiseError(
            f"{rows.table.path}: name the column(s) to be predicted with --target; beside the "
            f"SMILES there are {preview(others, limit=12)}"
        )
    return others[0]


def _node_task(graph: Graph, target: str, wanted: str) -> Task:
    if graph.y is None:
        raise EdgewiseError("the graph has no labels to learn from; save it with y")
    values = graph.y.is_floating_point()
    if wanted == ("classification" if values else "regression"):
        held = "values" if values else "class numbers"
        raise EdgewiseError(f"task = {wanted}, but the labels of the graph are {held}; change one")
    if values:
        return Task("regression", (target,))
    count = int(graph.y.max()) + 1
    return Task("classification", (target,), graph.class_names or tuple(map(str, range(count))))
