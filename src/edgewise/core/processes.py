"""Worker processes that do not outlive the process that started them."""

import multiprocessing
import os
import threading
from multiprocessing.connection import wait


def end_with_parent() -> None:
    """In a worker: end when the parent does, however it ends.

    A worker of a killed process would else wait for work for ever, or finish what nobody reads.
    """
    threading.Thread(target=_watch_parent, daemon=True).start()


def _watch_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
