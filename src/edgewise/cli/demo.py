"""``edgewise demo``: the main job on real data, start to end, in under a minute."""

from pathlib import Path
from typing import Annotated, Any

import typer

from edgewise.cli.console import Console, say

# What the paper prints for EGNN(C) on Cora's dense split: mean accuracy of 20 runs, in percent.
PAPER = 88.8
_SYNTHETIC: dict[str, Any] = {
    "normalize": "row",
    "hidden": 16,
    "dropout": 0.2,
    "learning_rate": 0.02,
    "epochs": 150,
    "patience": 30,
}


def demo(
    out: Annotated[Path | None, typer.Option(help="folder of the run (runs/demo)")] = None,
) -> None:
    """Train EGNN(C) on Cora, fetched if need be, as in the paper; say how it compares."""
    from edgewise.cli.progress import progress_bar
    from edgewise.core.errors import EdgewiseError
    from edgewise.data.store import fetch
    from edgewise.runs.train import new_folder

    with new_folder(out, "demo") as folder:
        try:
            with progress_bar("fetching cora", bytes=True) as progress:
                fetch("cora", progress)
        except EdgewiseError as error:
            say(f"Cora is unavailable: {error}", err=True)
            _on_synthetic_graph(folder)
            return
        accuracy = _train(["cora"], folder, preset="paper")
        say(f"test accuracy {100 * accuracy:.1f} %; the paper prints {PAPER} % (20 runs' mean)")
        _what_next("cora", folder)


def _on_synthetic_graph(folder: Path) -> None:
    from edgewise.data.graph_files import save_graph
    from edgewise.data.synthetic import direction_and_kind_graph

    graph, ceilings = direction_and_kind_graph()
    say(
        f"Training on a synthetic graph instead, whose labels depend on its edges: {graph}. "
        f"Without direction no model can expect more than {100 * ceilings.without_direction:.0f} %."
    )
    path = folder.with_name(f"{folder.name}-graph.safetensors")
    save_graph(graph, path)
    accuracy = _train([str(path)], folder, **_SYNTHETIC)
    say(f"test accuracy {100 * accuracy:.1f} %")
    _what_next(str(path), folder)


def _train(data: list[str], folder: Path, preset: str = "default", **settings: Any) -> float:
    from edgewise import runs
    from edgewise.core.presets import make_settings

    say("The first epoch of a new installation compiles the kernels, once.")
    console = Console()
    training = make_settings("node", preset, **settings).training
    with console.working(folder.name) as show:
        run = runs.train(
            data,
            folder,
            preset=preset,
            command="edgewise demo",
            tell=console.tell,
            on_epoch=console.epochs(show, training.epochs, training.ensemble),
            **settings,
        )
    return float(run.metrics["test"]["accuracy"])


def _what_next(data: str, folder: Path) -> None:
    say(f"The report: {(folder / 'report.html').resolve()}")
    say("What to try next:")
    say(f"  edgewise train {data} --layer attention      attention in place of convolution")
    say("  edgewise train freesolv                  molecules (edgewise[molecules])")
    say("  edgewise train nodes.csv edges.csv --target COLUMN")
