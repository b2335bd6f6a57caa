"""``edgewise reproduce``: the paper's tables, every row, as far as results are there or made."""

from pathlib import Path
from typing import Annotated

import typer

from edgewise.cli.console import Console, Interrupt

Names = list[str] | None


def reproduce(
    dataset: Annotated[Names, typer.Option(help="cora ... freesolv, may be repeated (all)")] = None,
    rows: Annotated[Names, typer.Option(help="rows such as 'EGNN(C)*', may be repeated")] = None,
    runs: Annotated[
        int | None, typer.Option(help="runs of a cell (20; molecules 5)", min=0)
    ] = None,
    protocol: Annotated[
        Names, typer.Option(help="fixed or random splits, may be repeated (both)")
    ] = None,
    split: Annotated[Names, typer.Option(help="Table 2: sparse or dense (both)")] = None,
    jobs: Annotated[int | None, typer.Option(help="processes (one a core)", min=1)] = None,
    results: Annotated[Path, typer.Option(help="folder of the results")] = Path("reproduction"),
    out: Annotated[
        Path | None, typer.Option(help="folder for page, tables and figure (that of the results)")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="print nothing")] = False,
) -> None:
    """Run what is missing of the paper's tables, and put its numbers beside ours.

    Every finished run is on disk at once: stop the command when you like, and call it again to go
    on. Then index.html draws what each component adds and the paper against ours; tables.md and a
    CSV for each table hold the numbers, figure-2.svg the classes of the training subsets. With
    --runs 0 it only writes these from what is there.
    """
    import os

    from edgewise.core.errors import EdgewiseError
    from edgewise.paper.execution import run_all
    from edgewise.paper.experiments import PROTOCOLS, RUNS, Experiment, plan
    from edgewise.paper.networks import count_networks
    from edgewise.paper.output import all_tables, write_output
    from edgewise.paper.printed import SPLITS, TITLES
    from edgewise.paper.result_store import ResultStore

    console = Console(quiet=quiet)
    if out is not None and out.exists() and not out.is_dir():
        raise EdgewiseError(f"{out} is a file; name a folder for page, tables and figure")
    asked = plan(dataset or list(RUNS), rows or (), runs, protocol or PROTOCOLS, split or SPLITS)
    found = ResultStore(results)
    if runs != 0:
        found.check_writable()
    if found.outdated:
        console.tell(f"{found.outdated} results were made with other settings and do not count")
    missing = len(found.missing(asked))
    console.tell(f"{len(asked) - missing} of {len(asked)} runs are there; {missing} to do")
    interrupt = Interrupt(console, ends="the runs under way")
    with interrupt, console.working("reproducing") as show:

        def on_result(done: int, total: int, experiment: Experiment, left: float) -> None:
            name = f"{experiment.dataset} {experiment.split} {experiment.row}"
            show(f"{name}, about {left / 60:.0f} min left", done, total)

        failed = run_all(asked, found, jobs or os.cpu_count() or 1, on_result, interrupt)
    networks = count_networks()
    for name, reason in networks.unavailable.items():
        console.tell(f"{TITLES[name]} is left out of Table 1 and Figure 2: {reason}")
    tables = all_tables(found, networks.sizes)
    for table in tables:
        console.table(table)
    for path in write_output(found, networks, tables, out or results):
        console.tell(f"wrote {path}")
    if failed:
        raise EdgewiseError("; ".join(failed))
    if interrupt():
        raise typer.Exit(128 + interrupt.signal)
