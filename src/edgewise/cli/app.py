"""The command line. No logic: it mounts the commands and turns errors into sentences."""

import os
import signal
import sys

import typer

from edgewise import __version__
from edgewise.cli.check import check
from edgewise.cli.compare import compare
from edgewise.cli.console import say
from edgewise.cli.datasets import datasets
from edgewise.cli.demo import demo
from edgewise.cli.flags import setting_flags, with_plugins
from edgewise.cli.predict import evaluate, predict
from edgewise.cli.report import report
from edgewise.cli.reproduce import reproduce
from edgewise.cli.train import train
from edgewise.cli.tune import tune
from edgewise.core.errors import EdgewiseError

app = typer.Typer(
    name="edgewise",
    help="Graph neural networks that use multi-dimensional edge features.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(with_plugins(setting_flags(check)))
app.command()(with_plugins(setting_flags(train)))
app.command()(with_plugins(predict))
app.command()(with_plugins(evaluate))
app.command()(compare)
app.command()(with_plugins(report))
app.command()(with_plugins(setting_flags(tune)))
app.command()(reproduce)
app.add_typer(datasets, name="datasets")
app.command("demo")(demo)


@app.command()
def version() -> None:
    """Print the version."""
    say(__version__)


def main() -> None:
    """Run a command; a mistake of the user's is one sentence and exit code 2."""
    # Before OpenMP is loaded: threads that spin while they wait slow two runs on the same
    # processors by a factor of ten and more.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # As an exception, so that files which are half written are taken away again.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        app()
    except EdgewiseError as error:
        say(f"edgewise: {error}", err=True)
        sys.exit(2)
