"""Which rows are for training, validation and test: drawn, by a column, by a file, by scaffold."""

from pathlib import Path

from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.core.recipe import Recipe
from edgewise.data.chemistry import MoleculeCodes
from edgewise.data.molecule_splits import scaffold_split, split_by_column, split_by_file
from edgewise.data.molecule_tables import MoleculeTable
from edgewise.data.splits import Split, load_split, random_split
from edgewise.data.tables import Table
from edgewise.tasks import Task

_SHARES = ("scaffold", "dense", "sparse", "molecules")


def node_split(recipe: Recipe, task: Task, truth: Tensor, table: Table | None) -> Split:
    if recipe.split_column:
        if table is None:
            raise EdgewiseError("split_column needs a nodes table; this graph has none")
        return split_by_column(table, recipe.split_column)
    if _is_file(recipe.split):
        return load_split(recipe.split)
    if recipe.split == "scaffold":
        raise EdgewiseError("nodes have no scaffolds; choose dense, sparse or three shares")
    return _drawn(recipe, task, truth)


def molecule_split(
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
