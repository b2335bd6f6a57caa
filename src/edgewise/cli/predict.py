"""``edgewise predict`` and ``edgewise evaluate``: use a trained model on its own or new data."""

import json as json_format
from pathlib import Path
from typing import Annotated

import typer

from edgewise.cli.console import Console, say
from edgewise.cli.flags import Device

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="folder of a run or a saved model")]
NewData = Annotated[
    list[str] | None,
    typer.Argument(help="new data, read as in training; without it, the data of the run"),
]
Encoding = Annotated[
    str, typer.Option(help="character encoding of new text files, if it is not as in training")
]
SmilesColumn = Annotated[
    str, typer.Option(help="SMILES column of new molecules, if its name is not that of training")
]


def predict(
    run: RunFolder,
    data: NewData = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help=".csv, .tsv or .parquet to write, or a folder for parts in Parquet (standard "
            "output)"
        ),
    ] = None,
    smiles_column: SmilesColumn = "",
    encoding: Encoding = "",
    device: Device = "",
    raw_cells: Annotated[
        bool,
        typer.Option(
            "--raw-cells",
            help="write text as it is; otherwise text that a spreadsheet would run as a formula, "
            "such as =1+1, gets a single quote in front",
        ),
    ] = False,
    distance: Annotated[
        bool,
        typer.Option(
            help="for molecules, a column with the distance to the nearest of training: 1 less "
            "the Tanimoto similarity"
        ),
    ] = True,
    pairs: Annotated[
        Path | None, typer.Option(help="links: table of the pairs of nodes to score")
    ] = None,
    top: Annotated[
        int, typer.Option(help="links: so many of the likeliest links of each node", min=0)
    ] = 0,
    ids: Annotated[
        Path | None, typer.Option("--for", help="links: table of the nodes that --top is for")
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="local|ray",
            help="who predicts: this machine, or, for files of molecules, the workers of a Ray "
            "cluster: that of RAY_ADDRESS, or one on this machine (extra ray)",
        ),
    ] = "local",
    workers: Annotated[
        int,
        typer.Option(
            help="processes that predict a file of molecules on the CPU (0: as many as there are "
            "processors, on this machine 8 at most, and one for a short file)",
            min=0,
        ),
    ] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="print nothing")] = False,
) -> None:
    """Predict every row, in order; one that cannot be read gets the reason in its column error."""
    from edgewise import runs

    console = Console(quiet=quiet or out is None)
    with console.working("predicting") as progress:
        good, bad = runs.predict(
            run,
            data or (),
            out,
            progress,
            smiles_column=smiles_column,
            encoding=encoding,
            device=device,
            raw_cells=raw_cells,
            distance=distance,
            pairs=pairs,
            top=top,
            ids=ids,
            engine=engine,
            workers=workers,
            tell=_to_nobody if quiet else _aside,
        )
    left = f"; {bad} rows could not be read, see the column error" if bad else ""
    console.tell(f"wrote {out}: {good} predicted{left}")


def evaluate(
    run: RunFolder,
    data: NewData = None,
    smiles_column: SmilesColumn = "",
    encoding: Encoding = "",
    device: Device = "",
    json: Annotated[bool, typer.Option("--json", help="all metrics as JSON")] = False,
) -> None:
    """Compare predictions with the truth, on the run's own data or on others."""
    from edgewise import runs

    with Console().working("reading") as progress:
        metrics = runs.evaluate(
            run,
            data or (),
            progress,
            smiles_column=smiles_column,
            encoding=encoding,
            device=device,
            tell=_aside,
        )
    if json:
        say(json_format.dumps(metrics, indent=1))
        return
    parts = metrics if not data else {"all": metrics}
    for part, values in parts.items():
        shown = [
            f"{name} {value:.4f}" if isinstance(value, float) else f"{name} {value}"
            for name, value in values.items()
            if isinstance(value, int | float)
        ]
        say(f"{part}: {', '.join(shown)}")


def _aside(text: str) -> None:
    """Beside the output, which may be read by a machine."""
    say(text, err=True)


def _to_nobody(text: str) -> None:
    """Print nothing."""
