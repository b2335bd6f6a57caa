"""What is to be learnt from which rows: data as read, their truth and their split."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from edgewise.data.chemistry import MoleculeCodes
from edgewise.data.citation import load_citation
from edgewise.data.graph_files import load_graph, read_folder, read_graphml
from edgewise.data.graph_reader import GraphReader
from edgewise.data.graph_tables import learn_graph_reader
from edgewise.data.molecule_splits import scaffold_split, split_by_column, split_by_file
from edgewise.data.molecule_tables import (
    InvalidRow,
    MoleculeTable,
    left_out,
    read_molecules,
    read_named,
    read_structures,
)
from edgewise.data.molecules import Featurizer, learn_featurizer
from edgewise.data.packed import MoleculeSet, pack
from edgewise.data.sources import Source
from edgewise.data.splits import Split, load_split, random_split
from edgewise.data.tables import Table, read_table
from edgewise.errors import EdgewiseError, preview
from edgewise.graph import Graph
from edgewise.recipe import Recipe
from edgewise.tasks import Task, guess_task, with_scale

Show = Callable[[str, int, int | None], None]  # what is going on, how much is done, of how much
_LABEL_NAMES = ("label", "class", "y")
_SHARES = ("scaffold", "dense", "sparse", "molecules")


@dataclass(frozen=True, eq=False)
class NodeProblem:
    """Nodes of one graph."""

    graph: Graph
    task: Task
    truth: Tensor  # see Task
    split: Split
    reader: GraphReader | None  # None: the graph was not read from tables

    @property
    def ids(self) -> Sequence[str]:
        """The name of each row."""
        return self.graph.node_ids or [str(i) for i in range(self.graph.num_nodes)]


@dataclass(frozen=True, eq=False)
class MoleculeProblem:
    """Molecules of one table."""

    molecules: MoleculeSet
    task: Task
    truth: Tensor  # see Task
    split: Split
    featurizer: Featurizer

    @property
    def ids(self) -> Sequence[str]:
        return self.molecules.smiles


Problem = NodeProblem | MoleculeProblem


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


def node_problem(
    graph: Graph, task: Task, split: Split, recipe: Recipe, reader: GraphReader | None = None
) -> NodeProblem:
    """Nodes of a graph that is there already."""
    if graph.y is None:
        raise EdgewiseError("the graph has no labels to learn from; give it y")
    truth = graph.y if task.kind == "classification" else graph.y.float().reshape(-1, 1)
    split = _of_known_rows(split, task, truth)
    return NodeProblem(graph, _scaled(task, truth, split, recipe), truth, split, reader)


def molecule_problem(
    codes: MoleculeCodes, task: Task, truth: Tensor, split: Split, recipe: Recipe
) -> MoleculeProblem:
    """Molecules that were read already; the featuriser is learnt from the training part alone."""
    if recipe.directed:
        raise EdgewiseError("bonds have no direction; set directed = false for molecules")
    split = _of_known_rows(split, task, truth)
    featurizer = learn_featurizer(
        codes, split.train.numpy(), kind=recipe.featurizer, threshold=recipe.pair_threshold
    )
    scaled = _scaled(task, truth, split, recipe)
    return MoleculeProblem(pack(codes, featurizer), scaled, truth, split, featurizer)


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
    task = _node_task(graph, target, recipe.task)
    assert graph.y is not None
    truth = graph.y if task.kind == "classification" else graph.y.reshape(-1, 1)
    split = _node_split(recipe, task, truth, table)
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
    split = _molecule_split(recipe, task, truth, rows, codes)
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


def _node_split(recipe: Recipe, task: Task, truth: Tensor, table: Table | None) -> Split:
    if recipe.split_column:
        if table is None:
            raise EdgewiseError("split_column needs a nodes table; this graph has none")
        return split_by_column(table, recipe.split_column)
    if _is_file(recipe.split):
        return load_split(recipe.split)
    if recipe.split == "scaffold":
        raise EdgewiseError("nodes have no scaffolds; choose dense, sparse or three shares")
    return _drawn(recipe, task, truth)


def _molecule_split(
    recipe: Recipe, task: Task, truth: Tensor, rows: MoleculeTable, codes: MoleculeCodes
) -> Split:
    if recipe.split_column:
        return split_by_column(rows.table, recipe.split_column, codes)
    if _is_file(recipe.split):
        return split_by_file(recipe.split, codes)
    if recipe.split == "scaffold":
        return scaffold_split(codes.smiles, seed=_split_seed(recipe))
    return _drawn(recipe, task, truth)


def _drawn(recipe: Recipe, task: Task, truth: Tensor) -> Split:
    stratify = None
    if recipe.stratify:
        if truth.dim() > 1 and truth.size(1) > 1:
            raise EdgewiseError("several targets cannot be balanced at once; set stratify = false")
        stratify = truth.reshape(-1)
    kind: str | list[float] = recipe.split
    if "," in recipe.split:
        try:
            kind = [float(share) for share in recipe.split.split(",")]
        except ValueError as error:
            raise EdgewiseError(
                f"split = {recipe.split!r} is not three shares; write 0.8,0.1,0.1"
            ) from error
    elif recipe.split not in _SHARES:
        raise EdgewiseError(
            f"split = {recipe.split!r} is not known; choose {', '.join(_SHARES)}, three shares "
            "such as 0.8,0.1,0.1, or a JSON file that exists"
        )
    rows = task.labelled_rows(truth)
    return random_split(rows, kind, seed=_split_seed(recipe), stratify=stratify)


def _split_seed(recipe: Recipe) -> int:
    return recipe.seed if recipe.split_seed is None else recipe.split_seed


def _is_file(split: str) -> bool:
    return split.endswith(".json") or Path(split).is_file()


def _of_known_rows(split: Split, task: Task, truth: Tensor) -> Split:
    """The split without rows of which nothing is known."""
    beyond = [int(r) for part in split.parts().values() for r in part[part >= len(truth)]]
    if beyond:
        raise EdgewiseError(
            f"the split names row(s) {preview(beyond)}, but there are {len(truth)}, counted from 0"
        )
    known = torch.zeros(len(truth), dtype=torch.bool)
    known[task.labelled_rows(truth)] = True
    kept = Split(**{name: rows[known[rows]] for name, rows in split.parts().items()})
    if not len(kept.train):
        raise EdgewiseError(
            f"no row with a known target is left for training ({kept}); give more rows, or another "
            "split"
        )
    return kept


def _scaled(task: Task, truth: Tensor, split: Split, recipe: Recipe) -> Task:
    return with_scale(task, truth[split.train], recipe.scale_targets)
