"""``edgewise demo``: train on real data, and see what the edges add."""

import time
from typing import TYPE_CHECKING

import typer

from edgewise.commands.progress import progress_bar

if TYPE_CHECKING:
    from edgewise.data.splits import Split
    from edgewise.graph import Graph

# What the paper prints for Cora's dense split: mean accuracy of 20 runs, in percent.
PAPER = {"GCN": 72.0, "EGNN(C)": 88.8, "EGNN(A)": 88.4}


def demo() -> None:
    """Train GCN, EGNN(C) and EGNN(A) on Cora, fetched if need be, and compare."""
    from edgewise.data.citation import load_citation
    from edgewise.data.splits import random_split
    from edgewise.data.store import fetch
    from edgewise.errors import EdgewiseError

    try:
        with progress_bar("fetching cora", bytes=True) as progress:
            fetch("cora", progress)
        graph, _ = load_citation("cora")
    except EdgewiseError as error:
        typer.echo(f"Cora cannot be had: {error}", err=True)
        _compare(*_made_up(), paper={})
        return
    typer.echo(f"{graph}, directed; dense split (60 / 20 / 20), seed 0")
    _compare(graph, random_split(graph.num_nodes, "dense", seed=0), PAPER)


def _made_up() -> "tuple[Graph, Split]":
    from edgewise.data.splits import random_split
    from edgewise.data.synthetic import direction_and_kind_graph

    graph, ceilings = direction_and_kind_graph()
    typer.echo(
        f"Training on a made-up graph instead, whose labels hang on its edges: {graph}. Without "
        f"direction no model can expect more than {100 * ceilings.without_direction:.0f} %."
    )
    assert graph.y is not None
    return graph, random_split((graph.y >= 0).nonzero()[:, 0], "dense", seed=0)


def _compare(graph: "Graph", split: "Split", paper: dict[str, float]) -> None:
    from edgewise.models import VARIANTS
    from edgewise.training import Recipe, fit_nodes

    assert graph.y is not None
    typer.echo("The first epoch of a new installation compiles the kernels, once.")
    recipe = Recipe(epochs=300, patience=50)
    for name in ("GCN", "EGNN(C)", "EGNN(A)"):
        start = time.perf_counter()
        with progress_bar(name) as show:

            def progress(epoch: int, loss: float, _: float) -> None:
                show(f"loss {loss:.3f}", epoch, recipe.epochs)

            fit = fit_nodes(graph, split, VARIANTS[name], recipe, progress)
        accuracy = 100 * fit.accuracy(graph.y, split.test)
        printed = f"   paper {paper[name]:.1f} %" if name in paper else ""
        typer.echo(
            f"{name:<8} test accuracy {accuracy:4.1f} %{printed}   "
            f"{fit.epochs} epochs in {time.perf_counter() - start:.1f} s"
        )
