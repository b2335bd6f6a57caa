"""A progress bar on the error stream, for people; pipes and logs see nothing of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from edgewise.core.terminal import printable


@contextmanager
def progress_bar(
    title: str, *, bytes: bool = False
) -> Iterator[Callable[[str, int, int | None], None]]:
    """Give a function that takes what is going on, how much is done, and how much there is."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    count = DownloadColumn() if bytes else MofNCompleteColumn()
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        count,
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(printable(title), total=None)

        def show(what: str, done: int, total: int | None) -> None:
            described = printable(f"{title}: {what}")
            bar.update(task, description=described, completed=done, total=total)

        yield show
