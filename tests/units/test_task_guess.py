"""The same columns ask for the same task, whether rows are nodes, edges or molecules."""

import math
from itertools import pairwise

import pytest
import torch

from edgewise.core.errors import EdgewiseError
from edgewise.data.sources import find_source
from edgewise.units.base import resolve

SMILES = ["C" * (i + 1) for i in range(24)]
COLUMNS = {
    "zeros and ones": ([i % 2 for i in range(24)], "multilabel"),
    "zeros and ones with gaps": ([i % 2 if i % 3 else "" for i in range(24)], "multilabel"),
    "zeros alone": ([0] * 24, "multilabel"),
    "words": (["abc"[i % 3] for i in range(24)], "classification"),
    "true and false": (["true" if i % 2 else "false" for i in range(24)], "classification"),
    "few whole numbers": ([i % 3 for i in range(24)], "classification"),
    "twenty whole numbers": ([i % 20 for i in range(24)], "classification"),
    "one and two": ([1 + i % 2 for i in range(24)], "classification"),
    "twenty-one whole numbers": ([i % 21 for i in range(24)], "regression"),
    "few values": ([0.5 * (i % 3) for i in range(24)], "regression"),
    "values": ([math.sqrt(i) for i in range(24)], "regression"),
}


def opened(unit, folder, **columns):
    names, values = list(columns), list(zip(*columns.values(), strict=True))
    head, lines = ",".join(names), [",".join(map(str, row)) for row in values]
    if unit == "graph":
        rows = [f"{s},{line}" for s, line in zip(SMILES, lines, strict=True)]
        (folder / "m.csv").write_text("\n".join([f"smiles,{head}", *rows]))
        source = find_source([str(folder / "m.csv")])
    elif unit == "edge":
        rows = [f"{s},{SMILES[0]},{line}" for s, line in zip(SMILES, lines, strict=True)]
        (folder / "e.csv").write_text("\n".join([f"source,target,{head}", *rows]))
        source = find_source([str(folder / "e.csv")], unit)
    else:
        rows = [f"{s},{line}" for s, line in zip(SMILES, lines, strict=True)]
        (folder / "nodes.csv").write_text("\n".join([f"id,{head}", *rows]))
        edges = [f"{a},{b}" for a, b in pairwise(SMILES)]
        (folder / "edges.csv").write_text("\n".join(["source,target", *edges]))
        source = find_source([str(folder)])
    found, settings = resolve(source, "default", {"target": names, "split": "1,0,0"})
    return found.open(source, settings).problem


@pytest.mark.parametrize("unit", ["node", "edge", "graph"])
@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_asks_for_its_task(unit, column, tmp_path):
    values, task = COLUMNS[column]
    problem = opened(unit, tmp_path, y=values)
    assert problem.task.name == task
    known = torch.tensor([value != "" for value in values])
    assert torch.equal(problem.task.known(problem.truth).reshape(-1), known)


@pytest.mark.parametrize("unit", ["node", "edge", "graph"])
def test_several_columns_are_labels_if_all_are_zeros_and_ones_else_values(unit, tmp_path):
    labels, values = COLUMNS["zeros and ones"][0], COLUMNS["values"][0]
    assert opened(unit, tmp_path, a=labels, b=labels[::-1]).task.name == "multilabel"
    assert opened(unit, tmp_path, a=labels, b=values).task.name == "regression"
    with pytest.raises(EdgewiseError, match=r"\[b\] hold words.*one column at a time"):
        opened(unit, tmp_path, a=labels, b=COLUMNS["words"][0])
