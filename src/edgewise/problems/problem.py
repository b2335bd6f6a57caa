"""What is to be learnt from which rows: data that are there, their truth and their split."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.recipe import Recipe
from edgewise.data.chemistry import MoleculeCodes
from edgewise.data.graph_reader import GraphReader
from edgewise.data.molecules import Featurizer, learn_featurizer
from edgewise.data.packed import MoleculeSet, pack
from edgewise.data.splits import Split
from edgewise.graphs.graph import Graph
from edgewise.tasks import Task, with_scale


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
