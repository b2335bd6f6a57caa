"""Predict a long file of molecules with several processes of this machine.

Most of the time goes into reading molecules, which one processor does for a process, however many
threads it has. A stretch is what one process reads at a time, so the predictions are the same.
"""

import signal
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing import get_context
from typing import Any

import torch

from edgewise.core.errors import EdgewiseError
from edgewise.core.plugins import loaded_plugins
from edgewise.core.processes import end_with_parent
from edgewise.data.sources import Source
from edgewise.data.streams import Stretch
from edgewise.kernels.backend import set_num_threads
from edgewise.runs.stretch_messages import predicted_from_bytes, stretch_to_bytes
from edgewise.runs.stretch_worker import StretchWorker, files_of
from edgewise.training.predictor import Predictor
from edgewise.units.base import Asked, Predicted

LONG = 8  # stretches from which on it pays to start processes, which takes some seconds
MOST = 8  # processes that are started without being asked for; each takes half a GiB
_AHEAD = 2  # stretches of each process that wait for it or for their turn

_worker: list[StretchWorker] = []  # of this process, where it is one of those started here


def predicted_by_processes(
    model: Predictor, source: Source, asked: Asked, workers: int
) -> Iterator[Predicted]:
    """Predictions for new data, some rows at a time, in their order.

    Args:
        model: The model; its files are sent to the processes.
        source: Data that are read row by row.
        asked: What else is asked.
        workers: How many processes predict, each with one thread; 0: as many as torch would have
            threads, if there are many rows.
    """
    stretches = model.unit.stretches(model.settings, source)
    if not workers:
        first = list(islice(stretches, LONG))
        workers = min(torch.get_num_threads(), MOST) if len(first) == LONG else 1
        stretches = chain(first, stretches)
    if workers == 1:
        return (model.unit.predicted_stretch(model, source, s, asked) for s in stretches)
    return _predicted(model, source, asked, stretches, workers)


def _predicted(
    model: Predictor, source: Source, asked: Asked, stretches: Iterator[Stretch], workers: int
) -> Iterator[Predicted]:
    arguments = files_of(model), source, asked.smiles_column, loaded_plugins()
    # Spawned, because forking a process that runs torch's threads may hang.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _start, arguments)
    waiting: deque[Future[bytes]] = deque()
    try:
        for stretch in stretches:
            waiting.append(pool.submit(_answer, stretch_to_bytes(stretch)))
            if len(waiting) == _AHEAD * workers:
                yield predicted_from_bytes(waiting.popleft().result())
        while waiting:
            yield predicted_from_bytes(waiting.popleft().result())
    except BrokenProcessPool as error:
        raise EdgewiseError(
            "a process that predicted ended unexpectedly, perhaps for want of memory; give fewer "
            "--workers"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _start(*arguments: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    end_with_parent()
    set_num_threads(1)
    _worker.append(StretchWorker(*arguments))


def _answer(content: bytes) -> bytes:
    return _worker[0].answer(content)
