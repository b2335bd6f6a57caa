"""A progress bar on the error stream, for people; pipes and logs see nothing of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(title, total=None)

        def show(what: str, done: int, total: int | None) -> None:
            bar.update(task, description=f"{title}: {what}", completed=done, total=total)

        yield show
