"""Predict a long file of molecules with several processes of this machine.

Most of the time goes into reading molecules, which one processor does for a process, however many
threads it has. A process gets the rows that are read at a time without the others, so predictions
are those of one process with one thread.
"""

import tempfile
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain
from multiprocessing import get_context
from typing import Any

import torch

from edgewise.core.errors import EdgewiseError
from edgewise.core.plugins import loaded_plugins
from edgewise.core.processes import ending_workers, leave_signals_to_parent, starting_workers
from edgewise.data.sources import Source
from edgewise.data.streams import Stretch
from edgewise.kernels.backend import set_num_threads
from edgewise.runs.stretch_messages import predicted_from_bytes, stretch_to_bytes
from edgewise.runs.stretch_worker import StretchWorker
from edgewise.training.predictor import Predictor
from edgewise.units.base import Asked, Predicted

MIN_ROWS = 8192  # more are worth starting processes for, which takes some seconds
MAX_WORKERS = 8  # that are started without being asked for; each takes half a GiB
_AHEAD = 2  # stretches of each process that wait for it or for their turn

_worker: list[StretchWorker | EdgewiseError] = []  # of a process that was started here


def predicted_by_processes(
    model: Predictor, source: Source, asked: Asked, workers: int
) -> Generator[Predicted]:
    """Predictions for new data, some rows at a time, in their order.

    Args:
        model: The model, which processes read from a folder of its own.
        source: Data that are read row by row.
        asked: What else is asked; ``tell`` is not called by other processes.
        workers: How many processes predict, each with one thread; 0: as many as torch would have
            threads, if there are many rows.
    """
    stretches = model.unit.stretches(model.settings, source)
    if not workers:
        first, rows = [], 0
        while rows <= MIN_ROWS and (stretch := next(stretches, None)) is not None:
            first.append(stretch)
            rows += len(stretch.table)
        workers = min(torch.get_num_threads(), MAX_WORKERS) if rows > MIN_ROWS else 1
        stretches = chain(iter(first), stretches)
        del first
    if workers == 1:
        for stretch in stretches:
            yield model.unit.predicted_stretch(model, source, stretch, asked)
    else:
        yield from _predicted(model, source, asked, stretches, workers)


def _predicted(
    model: Predictor, source: Source, asked: Asked, stretches: Iterator[Stretch], workers: int
) -> Iterator[Predicted]:
    # By its path: a process that ends before it has read much leaves the others waiting for ever.
    with tempfile.TemporaryDirectory(prefix="edgewise-") as folder:
        model.save(folder)
        arguments = folder, source, asked.smiles_column, loaded_plugins()
        # Spawned, because forking a process that runs torch's threads may hang.
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _start, arguments)
        with pool, ending_workers(pool):
            try:
                yield from _answers(pool, stretches, _AHEAD * workers)
            except BrokenProcessPool as error:
                raise EdgewiseError(
                    "a process that predicted ended unexpectedly, perhaps for want of memory; give "
                    'fewer --workers, or put the work of a script under if __name__ == "__main__":'
                ) from error


def _answers(
    pool: ProcessPoolExecutor, stretches: Iterator[Stretch], ahead: int
) -> Iterator[Predicted]:
    waiting: deque[Future[bytes]] = deque()
    for stretch in stretches:
        content = stretch_to_bytes(stretch)
        try:
            with starting_workers():
                waiting.append(pool.submit(_answer, content))
        except OSError as error:  # the pool is being closed, because a process of it has ended
            raise BrokenProcessPool(str(error)) from error
        if len(waiting) == ahead:
            yield predicted_from_bytes(waiting.popleft().result())
    while waiting:
        yield predicted_from_bytes(waiting.popleft().result())


def _start(*arguments: Any) -> None:
    leave_signals_to_parent()
    set_num_threads(1)
    try:
        _worker.append(StretchWorker(*arguments))
    except EdgewiseError as error:
        _worker.append(error)


def _answer(content: bytes) -> bytes:
    (worker,) = _worker
    if isinstance(worker, EdgewiseError):
        raise worker
    return worker.answer(content)
