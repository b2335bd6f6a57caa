"""What a run says while it works: a live line on a terminal, plain lines in a log, or JSON."""

import json
import math
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from edgewise.cli.progress import progress_bar
from edgewise.core.files import inside
from edgewise.core.terminal import printable

if TYPE_CHECKING:
    from pathlib import Path

    from edgewise.paper.tables import PaperTable
    from edgewise.runs.checkpoint import OnEpoch
    from edgewise.training import Epoch

Show = Callable[[str, int, int | None], None]
_SECONDS_BETWEEN_LINES = 5.0


def say(text: str, *, err: bool = False) -> None:
    """Print text; control characters, which names in files may hold, are spelt out."""
    typer.echo(printable(text), err=err)


class Console:
    """Speaks to a person, to a machine (``as_json``) or to nobody (``quiet``)."""

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet, self.as_json = quiet, as_json

    def tell(self, text: str) -> None:
        """A sentence for people."""
        if not self.quiet and not self.as_json:
            say(text)

    def table(self, table: "PaperTable") -> None:
        """A table: drawn within the width of a terminal, Markdown in a pipe or a log."""
        from rich.console import Console as Terminal

        from edgewise.cli.terminal_table import drawn_for_terminal

        terminal = Terminal()
        if self.quiet or self.as_json or not terminal.is_terminal:
            self.tell(f"\n{table.markdown()}")
        else:
            terminal.print(drawn_for_terminal(table, terminal.width))

    def event(self, name: str, **content: Any) -> None:
        """A line of JSON for machines."""
        if self.as_json:
            say(json.dumps({"event": name, **without_nan(content)}))

    @contextmanager
    def working(self, title: str) -> Iterator[Show]:
        """A progress bar for people on a terminal."""
        if self.quiet or self.as_json:
            yield lambda what, done, total: None
            return
        with progress_bar(title) as show:
            yield show

    def epochs(self, show: Show, epochs: int, ensemble: int) -> "OnEpoch":
        """A function to be called after each epoch, which moves the bar that ``show`` moves."""
        last = time.monotonic()

        def on_epoch(member: int, epoch: "Epoch", best: "Epoch") -> None:
            nonlocal last
            self.event("epoch", member=member, **vars(epoch), best_epoch=best.number)
            which = f"model {member + 1} of {ensemble}, " if ensemble > 1 else ""
            losses = f"loss {epoch.train_loss:.4f}, validation {epoch.validation_loss:.4f}"
            better = f"best {best.validation_loss:.4f} in epoch {best.number}"
            # Short enough for a bar beside it on a terminal of 80 columns.
            now_and_best = f"{epoch.validation_loss:.3f}, best {best.validation_loss:.3f}"
            short = f"loss {epoch.train_loss:.3f}, validation {now_and_best} at {best.number}"
            show(f"{which}{short}", epoch.number, epochs)
            now = time.monotonic()
            if not sys.stderr.isatty() and now - last > _SECONDS_BETWEEN_LINES:
                last = now
                self.tell(f"{which}epoch {epoch.number}: {losses}, {better}")

        return on_epoch


class Interrupt:
    """Ctrl-C and SIGTERM end the epoch, then the run; a second one ends at once."""

    def __init__(self, console: Console, ends: str = "this epoch") -> None:
        self.signal = 0
        self.console, self.ends = console, ends

    def __call__(self) -> bool:
        return self.signal != 0

    def __enter__(self) -> "Interrupt":
        self.before = {s: signal.signal(s, self._caught) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _caught(self, number: int, _: FrameType | None) -> None:
        if self.signal:
            raise KeyboardInterrupt
        self.signal = number
        if not self.console.quiet:
            say(f"stopping after {self.ends}; once more to stop at once", err=True)


def for_tensorboard() -> "Callable[[Path], OnEpoch]":
    """A function that, given a run's folder, gives one that writes each epoch for TensorBoard."""
    from edgewise.core.errors import missing_extra

    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise missing_extra("tensorboard", "tensorboard", "--tensorboard") from error

    def watch(folder: "Path") -> "OnEpoch":
        writers: dict[int, Any] = {}

        def on_epoch(member: int, epoch: "Epoch", _: "Epoch") -> None:
            if member not in writers:
                writers[member] = SummaryWriter(str(inside(folder, f"tensorboard/member-{member}")))
            for name in ("train_loss", "validation_loss", "validation_score"):
                writers[member].add_scalar(name, getattr(epoch, name), epoch.number)
            writers[member].flush()

        return on_epoch

    return watch


def without_nan(content: Any) -> Any:
    """JSON has no NaN; null says the same."""
    if isinstance(content, dict):
        return {k: without_nan(v) for k, v in content.items()}
    if isinstance(content, list | tuple):
        return [without_nan(v) for v in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content
