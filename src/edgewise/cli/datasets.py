"""``edgewise datasets``: what exists, fetch it, and the paper's picture of it."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from edgewise.cli.console import say
from edgewise.cli.flags import with_plugins
from edgewise.cli.progress import progress_bar


class _ListUnlessTold(TyperGroup):
    """Without a subcommand, list."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["list"])


datasets = typer.Typer(
    name="datasets",
    cls=_ListUnlessTold,
    help="List data sets, fetch them, draw their classes.",
)


@datasets.command("list")
@with_plugins
def list_datasets() -> None:
    """List the data sets: what they hold, where they come from, whether they are cached."""
    from edgewise.data.catalogue import CATALOGUE
    from edgewise.data.own_datasets import OWN_DATASETS
    from edgewise.data.store import cache_folder, is_cached, origins

    for data in CATALOGUE.values():
        state = "cached" if is_cached(data.name) else "not cached"
        say(f"{data.name:<12} {data.size / 2**20:6.2f} MB  {state:<10}  {data.summary}")
        say(f"{'':<13}from {origins(data.name)}")
        say(f"{'':<13}cite {data.cite}; {data.licence}")
    for name, own in OWN_DATASETS.items():
        say(f"{name:<12} {'':>6}     your own    {own.summary}")
    say(f"The cache is {cache_folder()} (EDGEWISE_CACHE names another).")


@datasets.command()
def fetch(
    names: Annotated[list[str], typer.Argument(help="data sets, or: all")],
) -> None:
    """Get data sets into the cache, verified by checksum."""
    from edgewise.data.catalogue import CATALOGUE, dataset
    from edgewise.data.store import cache_folder
    from edgewise.data.store import fetch as fetch_files

    chosen = list(CATALOGUE) if names == ["all"] else [dataset(name).name for name in names]
    for name in chosen:
        with progress_bar(f"fetching {name}", bytes=True) as progress:
            source = fetch_files(name, progress)
        place = cache_folder() / Path(dataset(name).files[0].editions[0].path).parent
        say(f"{name}: verified, from {source}, in {place}")


@datasets.command()
def classes(
    output: Annotated[Path, typer.Option(help="the picture to write: .svg, .png or .pdf")] = Path(
        "class-distributions.svg"
    ),
    names: Annotated[
        list[str] | None, typer.Option("--name", help="a citation network, may be repeated")
    ] = None,
    split: Annotated[str, typer.Option(help="sparse (5/15/80) or dense (60/20/20)")] = "dense",
    seed: Annotated[int, typer.Option(help="seed of the split", min=0)] = 0,
) -> None:
    """Draw the classes of the training subsets: Figure 2 of the paper."""
    from edgewise.data.citation import load_citation
    from edgewise.data.splits import random_split
    from edgewise.paper.class_balance import write_class_balance
    from edgewise.paper.networks import class_counts

    counts = {}
    for name in names or ["cora", "citeseer", "pubmed"]:
        graph, notes = load_citation(name)
        say(f"{name}: {notes}")
        training = random_split(graph.num_nodes, split, seed=seed).train
        counts[name] = class_counts(graph, training)
        shown = ", ".join(f"{label} {count}" for label, count in counts[name].items())
        say(f"{name}: {len(training)} training nodes: {shown}")
    write_class_balance(counts, output)
    say(f"wrote {output}")
