"""Worker processes that do not outlive the process that started them."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def end_with_parent() -> None:
    """In a worker: end when the parent does, however it ends.

    A worker of a killed process would else wait for work for ever, or finish what nobody reads.
    """
    threading.Thread(target=_watch_parent, daemon=True).start()


def leave_signals_to_parent() -> None:
    """In a worker: the parent decides when to end, and ends the worker with it."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    end_with_parent()


@contextmanager
def ending_workers() -> Iterator[None]:
    """Do not wait for what workers are about to do after an error or Ctrl-C."""
    before = set(multiprocessing.active_children())
    try:
        yield
    except BaseException:
        for worker in set(multiprocessing.active_children()) - before:
            worker.kill()
        raise


@contextmanager
def starting_workers() -> Iterator[None]:
    """Workers that are started here are deaf to Ctrl-C from the beginning, while they import.

    The parent is as well for that moment, which is short, for it does not wait for them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _watch_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
