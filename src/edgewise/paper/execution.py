"""Run experiments in parallel processes that share the data and use one thread each."""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import torch

from edgewise.graph import Graph
from edgewise.kernels.backend import set_num_threads
from edgewise.paper.experiments import Data, Experiment, load_data, run_experiment
from edgewise.paper.results import Results

# Finished, to do, the experiment that has just ended, and the seconds that are probably left.
OnResult = Callable[[int, int, Experiment, float], None]
_loaded: dict[str, Data] = {}  # in a worker process: its data


def run_all(
    experiments: Sequence[Experiment],
    results: Results,
    jobs: int,
    on_result: OnResult,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Run what is missing, one data set after the other; each result is written at once."""
    missing = results.missing(experiments)
    done, start = 0, time.monotonic()
    for dataset in dict.fromkeys(e.dataset for e in missing):
        data = _shared(load_data(dataset))
        mine = [e for e in missing if e.dataset == dataset]
        # Spawned, because forking a process that runs threads may hang.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, context, _start, (dataset, data)) as pool, _ending_workers():
            waiting: dict[Future[dict[str, Any]], Experiment] = {}
            while (mine or waiting) and not (stop() and not waiting):
                while mine and len(waiting) < jobs and not stop():
                    experiment = mine.pop(0)
                    waiting[pool.submit(_run, experiment)] = experiment
                ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in ended:
                    experiment = waiting.pop(future)
                    results.add(experiment, future.result())
                    done += 1
                    left = (time.monotonic() - start) / done * (len(missing) - done)
                    on_result(done, len(missing), experiment, left)
        if stop():
            return


@contextmanager
def _ending_workers() -> Iterator[None]:
    """Do not wait for runs under way after an error or a second Ctrl-C."""
    try:
        yield
    except BaseException:
        for worker in multiprocessing.active_children():
            worker.terminate()
        raise


def _shared(data: Data) -> Data:
    """Put the tensors of a graph into memory that all processes see."""
    if isinstance(data, Graph):
        for tensor in (data.x, data.edge_index, data.edge_attr, data.y):
            if isinstance(tensor, torch.Tensor):
                tensor.share_memory_()
    return data


def _start(dataset: str, data: Data) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    set_num_threads(1)
    _loaded[dataset] = data


def _run(experiment: Experiment) -> dict[str, Any]:
    return run_experiment(experiment, _loaded[experiment.dataset])
