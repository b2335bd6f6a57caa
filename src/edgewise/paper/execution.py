"""Run experiments in parallel processes that share the data and use one thread each."""

import multiprocessing
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from typing import Any

import torch

from edgewise.core.errors import EdgewiseError
from edgewise.core.processes import ending_workers, leave_signals_to_parent
from edgewise.graphs.graph import Graph
from edgewise.kernels.backend import set_num_threads
from edgewise.paper.experiments import Data, Experiment, load_data, run_experiment
from edgewise.paper.result_store import ResultStore

# Finished, to do, the experiment that has just ended, and the seconds that are probably left.
OnResult = Callable[[int, int, Experiment, float], None]
_loaded: dict[str, Data] = {}  # in a worker process: its data


def run_all(
    experiments: Sequence[Experiment],
    results: ResultStore,
    jobs: int,
    on_result: OnResult,
    stop: Callable[[], bool] = lambda: False,
) -> list[str]:
    """Run what is missing, one data set after the other; each result is written at once.

    Returns:
        A sentence for each data set that is unavailable, and for each run that failed.
    """
    missing = results.missing(experiments)
    failed: list[str] = []
    done, start = 0, time.monotonic()
    for dataset in dict.fromkeys(e.dataset for e in missing):
        mine = [e for e in missing if e.dataset == dataset]
        try:
            data = _shared(load_data(dataset))
        except EdgewiseError as error:
            failed.append(f"{len(mine)} run(s) of {dataset} were left out: {error}")
            continue
        with closing(_lines(mine, dataset, data, jobs, stop)) as lines:
            for experiment, line in lines:
                if isinstance(line, EdgewiseError):
                    failed.append(f"{experiment} failed: {line}")
                else:
                    results.add(experiment, line)
                done += 1
                left = (time.monotonic() - start) / done * (len(missing) - done)
                on_result(done, len(missing), experiment, left)
        if stop():
            break
    return failed


def _lines(
    mine: list[Experiment], dataset: str, data: Data, jobs: int, stop: Callable[[], bool]
) -> Generator[tuple[Experiment, dict[str, Any] | EdgewiseError]]:
    """Each experiment of a data set with its line of results, as they end, or with its failure."""
    mine = list(mine)
    # Spawned, because forking a process that runs threads may hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, _start, (dataset, data)) as pool, ending_workers(pool):
        waiting: dict[Future[dict[str, Any]], Experiment] = {}
        while (mine or waiting) and not (stop() and not waiting):
            under_way = list(waiting.values())
            try:
                while mine and len(waiting) < jobs and not stop():
                    under_way.append(mine.pop(0))
                    waiting[pool.submit(_run, under_way[-1])] = under_way[-1]
                ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
                lines = [(waiting.pop(future), _line_or_failure(future)) for future in ended]
            except BrokenProcessPool as error:
                names = ", ".join(map(str, under_way))
                raise EdgewiseError(
                    f"a process was killed while {names} ran, perhaps because memory ran out; "
                    "what is finished is kept, so go on with fewer --jobs"
                ) from error
            yield from lines


def _line_or_failure(future: Future[dict[str, Any]]) -> dict[str, Any] | EdgewiseError:
    try:
        return future.result()
    except EdgewiseError as error:
        return error
    except MemoryError:
        return EdgewiseError("there was not enough memory; go on with fewer --jobs")


def _shared(data: Data) -> Data:
    """Put the tensors of a graph into memory that all processes see."""
    if isinstance(data, Graph):
        for tensor in (data.x, data.edge_index, data.edge_attr, data.y):
            if isinstance(tensor, torch.Tensor):
                tensor.share_memory_()
    return data


def _start(dataset: str, data: Data) -> None:
    leave_signals_to_parent()
    set_num_threads(1)
    _loaded[dataset] = data


def _run(experiment: Experiment) -> dict[str, Any]:
    return run_experiment(experiment, _loaded[experiment.dataset])
