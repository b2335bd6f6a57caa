"""The command line. No logic: it mounts the commands and turns errors into sentences."""

import errno
import os
import signal
import sys
from contextlib import suppress

import typer

from edgewise import __version__
from edgewise.cli.check import check
from edgewise.cli.compare import compare
from edgewise.cli.console import say
from edgewise.cli.datasets import datasets
from edgewise.cli.demo import demo
from edgewise.cli.flags import setting_flags, with_plugins
from edgewise.cli.importing import import_tables
from edgewise.cli.predict import evaluate, predict
from edgewise.cli.report import report
from edgewise.cli.reproduce import reproduce
from edgewise.cli.train import train
from edgewise.cli.tune import tune
from edgewise.core.errors import EdgewiseError, out_of_memory
from edgewise.core.settings import IMPORT_SETTINGS

app = typer.Typer(
    name="edgewise",
    help="Graph neural networks that use multi-dimensional edge features.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(with_plugins(setting_flags(check)))
app.command()(with_plugins(setting_flags(train)))
app.command("import")(setting_flags(import_tables, IMPORT_SETTINGS))
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
    # As an exception, so that files which are half written are taken away again.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _run()
    except KeyboardInterrupt:  # while the flags are read; commands answer it themselves
        sys.exit(130)
    except EdgewiseError as error:
        _fail(str(error))
    except OSError as error:
        _output_failed(error)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            sys.exit(130)  # Python 3.11 makes an error of it where a class is being made
        if not out_of_memory(error):
            raise
        _fail(
            "there was not enough memory; set a smaller hidden or batch_size, choose layer = conv, "
            "or give smaller data"
        )


def _run() -> None:
    try:
        app()
    except SystemExit as end:
        # Typer makes code 1 of a reader that is gone.
        if isinstance(end.__context__, BrokenPipeError):
            raise end.__context__ from None
        raise
    finally:  # here, where a full disk can still be told
        if sys.stdout is not None:
            sys.stdout.flush()


def _output_failed(error: OSError) -> None:
    """The standard output cannot take more: its reader is gone, or its disk is full."""
    if error.filename is not None:
        raise error  # not the output, but a file that somebody forgot to ask about
    # Python flushes once more when it ends, which would fail again.
    with suppress(OSError, AttributeError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:  # as a program that the signal ended
        sys.exit(128 + 13)
    _fail(f"cannot write the output ({error.strerror or error}); make room, or name a file")


def _fail(sentence: str) -> None:
    with suppress(OSError):
        say(f"edgewise: {sentence}", err=True)
    sys.exit(2)
