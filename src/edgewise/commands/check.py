"""``edgewise check``: read your own graph or molecules, and say what is in them or is wrong."""

from pathlib import Path
from typing import Annotated

import typer

from edgewise.commands.progress import progress_bar

check = typer.Typer(
    name="check",
    help="Read your own graph or molecules, and say what is in them or what is wrong.",
    no_args_is_help=True,
)
Names = list[str] | None


@check.command()
def graph(
    nodes: Annotated[Path, typer.Argument(help="nodes table: .csv, .tsv or .parquet")],
    edges: Annotated[Path, typer.Argument(help="edges table: .csv, .tsv or .parquet")],
    id: Annotated[str, typer.Option(help="column that names each node")] = "id",
    label: Annotated[str | None, typer.Option(help="column to be predicted")] = None,
    task: Annotated[str | None, typer.Option(help="classification or regression")] = None,
    source: Annotated[str, typer.Option(help="column an edge starts from")] = "source",
    target: Annotated[str, typer.Option(help="column an edge goes to")] = "target",
    text: Annotated[Names, typer.Option(help="read this column as text")] = None,
    categories: Annotated[Names, typer.Option(help="read this column as categories")] = None,
    ignore: Annotated[Names, typer.Option(help="leave this column out")] = None,
    undirected: Annotated[bool, typer.Option(help="edges go both ways")] = False,
    missing: Annotated[str, typer.Option(help="empty numbers: error or mean")] = "error",
    unknown: Annotated[str, typer.Option(help="edges to unknown nodes: error or drop")] = "error",
    duplicates: Annotated[str, typer.Option(help="repeated edges: error, sum or max")] = "error",
    encoding: Annotated[str, typer.Option(help="of text files")] = "utf-8",
    save: Annotated[Path | None, typer.Option(help="write what was learnt, as JSON")] = None,
) -> None:
    """Read a nodes table and an edges table."""
    from edgewise.data.graph_tables import learn_graph_reader
    from edgewise.data.tables import read_table

    tables = [read_table(path, encoding=encoding) for path in (nodes, edges)]
    reader = learn_graph_reader(
        *tables,
        id=id,
        label=label,
        task=task,
        source=source,
        target=target,
        text=text or (),
        categories=categories or (),
        ignore=ignore or (),
        directed=not undirected,
        missing=missing,
        unknown=unknown,
        duplicates=duplicates,
    )
    found, notes = reader.read(*tables)
    typer.echo(str(found))
    typer.echo(str(notes))
    for column in (*reader.features, *reader.channels):
        kind = type(column).__name__.lower()
        typer.echo(f"  {column.name}: {kind}, {len(column.outputs)} wide")
    if save is not None:
        reader.save(save)
        typer.echo(f"wrote {save}")


@check.command()
def molecules(
    path: Annotated[Path, typer.Argument(help=".csv, .tsv, .parquet or .sdf")],
    smiles: Annotated[str | None, typer.Option(help="column of SMILES")] = None,
    target: Annotated[Names, typer.Option(help="column of measurements, may be repeated")] = None,
    on_invalid: Annotated[str, typer.Option(help="bad rows: error, skip or null")] = "error",
    invalid_file: Annotated[Path, typer.Option(help="where bad rows are listed")] = Path(
        "invalid-rows.csv"
    ),
    featurizer: Annotated[str, typer.Option(help="paper or rich")] = "paper",
    workers: Annotated[int, typer.Option(help="processes")] = 1,
    encoding: Annotated[str, typer.Option(help="of text files")] = "utf-8",
) -> None:
    """Read molecules with their measurements."""
    from edgewise.data.molecule_tables import read_molecules, read_structures, write_invalid
    from edgewise.data.molecules import learn_featurizer
    from edgewise.data.packed import pack

    source = read_molecules(path, smiles=smiles, targets=target or (), encoding=encoding)
    with progress_bar(path.name) as progress:
        codes, invalid = read_structures(
            source, on_invalid=on_invalid, workers=workers, progress=progress
        )
    learnt = learn_featurizer(codes, range(len(codes)), kind=featurizer)
    typer.echo(str(pack(codes, learnt, source.targets, source.target_names)))
    if invalid:
        write_invalid(invalid_file, invalid)
        typer.echo(f"{len(invalid)} of {len(source)} rows are bad; they are in {invalid_file}")
