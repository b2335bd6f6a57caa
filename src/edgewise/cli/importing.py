"""``edgewise import``: tables in, a graph store out."""

from pathlib import Path
from typing import Annotated, Any

import typer

from edgewise.cli.console import Console


def import_tables(
    data: Annotated[
        list[str],
        typer.Argument(
            help="a table of nodes and one of edges (.csv, .tsv, .parquet, or a folder of parts "
            "of one), or a folder that holds both"
        ),
    ],
    out: Annotated[Path, typer.Option(help="folder of the store, a new one")],
    like: Annotated[
        Path | None,
        typer.Option(help="run, saved model or store, as whose columns these are read"),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="print nothing")] = False,
    *,
    settings: dict[str, Any],
) -> None:
    """Import tables of any size into a graph store, which every command takes for a graph."""
    from edgewise import runs

    console = Console(quiet=quiet)
    with console.working("importing") as progress:
        runs.import_graph(data, out, like=like, tell=console.tell, progress=progress, **settings)
    console.tell(f"wrote {out}")
