"""Pictures, drawn by matplotlib without a display."""

from io import BytesIO
from pathlib import Path

import matplotlib
import torch
from matplotlib.figure import Figure
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import write_atomically
from edgewise.graphs.graph import Graph


def class_counts(graph: Graph, rows: Tensor) -> dict[str, int]:
    """How many of these nodes each class has, by class name."""
    if graph.y is None or graph.class_names is None:
        raise EdgewiseError("the graph has no classes to count; give it y and class_names")
    labels = graph.y[rows]
    counts = torch.bincount(labels[labels >= 0], minlength=len(graph.class_names)).tolist()
    return dict(zip(graph.class_names, counts, strict=True))


def draw_class_distributions(counts: dict[str, dict[str, int]], path: str | Path) -> None:
    """Draw one bar chart per data set: the share of each class, with its count on top.

    Args:
        counts: For each data set, how many nodes each class has.
        path: Where to write; the ending chooses the format.
    """
    figure = Figure(figsize=(4 * len(counts), 3.4), layout="constrained")
    axes = figure.subplots(1, len(counts), squeeze=False)[0]
    for axis, (name, classes) in zip(axes, counts.items(), strict=True):
        total = sum(classes.values())
        bars = axis.bar(range(len(classes)), [count / total for count in classes.values()])
        axis.bar_label(bars, labels=[str(count) for count in classes.values()], fontsize=8)
        labels = [label.replace("_", " ") for label in classes]
        axis.set_xticks(range(len(classes)), labels, rotation=35, ha="right", fontsize=8)
        # What a balanced set would have, so that imbalance is seen, not estimated.
        axis.axhline(1 / len(classes), color="grey", linewidth=0.8, linestyle="--", zorder=0)
        axis.set_title(f"{name}, {total:,} training nodes", fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("share of the training subset")
    picture, ending = BytesIO(), Path(path).suffix.removeprefix(".") or "svg"
    try:
        # Nothing of the moment in it: the same numbers give the same file.
        with matplotlib.rc_context({"svg.hashsalt": "edgewise"}):
            dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending)
            figure.savefig(picture, format=ending, dpi=150, metadata=dated)
    except ValueError as error:
        raise EdgewiseError(
            f"cannot draw {path} ({error}); try a name that ends in .svg"
        ) from error
    write_atomically(path, picture.getvalue())
