"""Worker processes that do not outlive the process that started them."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
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
def ending_workers(pool: ProcessPoolExecutor) -> Iterator[None]:
    """Do not wait for what the workers of a pool are about to do after an error or Ctrl-C."""
    try:
        yield
    except BaseException:
        # Python 3.14 has a name for it; no other process of this one may be hit.
        for worker in list((pool._processes or {}).values()):
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
            # None: it was not set from Python, and cannot be set again.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _watch_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
