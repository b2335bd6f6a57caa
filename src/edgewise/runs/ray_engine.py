"""Predict with the workers of a Ray cluster: stretches of rows go out, predictions come back.

A stretch is what :func:`edgewise.predict` reads at a time without Ray, and it is predicted by the
same code, so the predictions are the same. This process reads and writes; workers need none of its
files.
"""

import logging
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from edgewise.core.errors import EdgewiseError, missing_extra
from edgewise.core.plugins import loaded_plugins
from edgewise.data.sources import Source
from edgewise.runs.stretch_messages import predicted_from_bytes, stretch_to_bytes
from edgewise.runs.stretch_worker import StretchWorker
from edgewise.training.predictor import Predictor
from edgewise.units.base import Asked, Predicted

# Before Ray is imported: no telemetry, no warnings about itself, and workers that are as important
# as the command itself, where Ray would have them give way to everybody else on the machine.
for _name, _value in (
    *(("USAGE_STATS_ENABLED", "0"), ("ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")),
    *(("BACKEND_LOG_LEVEL", "fatal"), ("worker_niceness", "0")),
):
    os.environ.setdefault(f"RAY_{_name}", _value)

try:
    import ray
    from ray.data import (
        ActorPoolStrategy,
        DataContext,
        Datasource,
        ExecutionResources,
        ReadTask,
        read_datasource,
    )
    from ray.data.block import BlockMetadata
except ImportError as error:
    raise missing_extra("ray", "ray", "--engine ray") from error

_WAITING = 2**28  # bytes of rows and predictions that wait for somebody, in all
_MESSAGES = pa.schema([("content", pa.binary()), ("error", pa.string())])


def predicted_by_ray(
    model: Predictor, source: Source, asked: Asked, workers: int = 0
) -> Generator[Predicted]:
    """Predictions for new data, some rows at a time, in their order.

    Args:
        model: The model; its files are sent to the workers.
        source: Data that are read row by row.
        asked: What else is asked; ``tell`` is not called.
        workers: How many processes predict, each with one processor; 0: as many as there are.
    """
    model.unit.stretches(model.settings, source)  # other units say that they have none
    return _predicted(model, source, asked, workers)


def _predicted(
    model: Predictor, source: Source, asked: Asked, workers: int
) -> Generator[Predicted]:
    with _cluster(workers) as processes, DataContext.current(_quiet_context()):
        pool = ActorPoolStrategy(size=processes)
        rows = read_datasource(_Rows(model, source), override_num_blocks=1, num_cpus=0)
        predicted = rows.map_batches(
            _Worker,
            batch_size=None,
            batch_format="pyarrow",
            compute=pool,
            num_cpus=1,
            num_gpus=1 if model.device.type == "cuda" else None,
            fn_constructor_args=(
                *(ray.put(_files_of(model)), source),
                *(asked.smiles_column, loaded_plugins()),
            ),
        )
        try:
            for batch in predicted.iter_batches(batch_size=None, batch_format="pyarrow"):
                for content, error in zip(*batch.columns, strict=True):
                    if error.is_valid:
                        raise EdgewiseError(error.as_py())
                    yield predicted_from_bytes(content.as_buffer())
        except ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1]
            raise EdgewiseError(
                f"the Ray cluster could not predict ({reason}); see its logs, or leave out "
                "--engine ray"
            ) from error


@contextmanager
def _cluster(workers: int) -> Iterator[int]:
    """A cluster to work on, and how many processes of it predict.

    That which is connected already, else that of ``RAY_ADDRESS``, else one on this machine, which
    ends here.
    """
    own = not ray.is_initialized()
    if own:
        local = {} if os.environ.get("RAY_ADDRESS") else _on_this_machine(workers)
        try:
            with _without_stderr():  # to which Ray says how much it will say
                ray.init(logging_level=logging.ERROR, log_to_driver=False, **local)
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise EdgewiseError(
                f"Ray cannot be started or reached ({reason}); check RAY_ADDRESS"
            ) from error
    try:
        processors = int(ray.cluster_resources().get("CPU", 0))
        if max(workers, 1) > processors:
            raise EdgewiseError(
                f"--workers {max(workers, 1)}, but the Ray cluster has {processors} processor(s); "
                "give fewer workers, or add machines"
            )
        yield workers or processors
    finally:
        if own:
            ray.shutdown()


@contextmanager
def _without_stderr() -> Iterator[None]:
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _on_this_machine(workers: int) -> dict[str, Any]:
    return {
        "address": "local",
        "num_cpus": workers or os.cpu_count(),
        "include_dashboard": False,
        "object_store_memory": 2 * _WAITING,
    }


def _quiet_context() -> Any:
    """Settings of Ray Data: rows in their order, few of them waiting, nothing printed."""
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = DataContext.get_current().copy()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.execution_options.preserve_order = True
    context.execution_options.resource_limits = ExecutionResources(object_store_memory=_WAITING)
    context.max_consecutive_actor_init_deaths = 3
    context.target_max_block_size = 1  # byte: a stretch is never joined to another one
    return context


def _files_of(model: Predictor) -> dict[str, bytes]:
    """The files of a saved model, which workers may find on no disk of theirs."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def _message(content: bytes | None, error: str | None = None) -> pa.Table:
    return pa.Table.from_pydict({"content": [content], "error": [error]}, schema=_MESSAGES)


class _Rows(Datasource):
    """New rows, read on the machine of this process: one stretch, one message."""

    supports_distributed_reads = False

    def __init__(self, model: Predictor, source: Source) -> None:
        super().__init__()
        self.unit, self.settings, self.source = model.unit, model.settings, source

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(self, parallelism: int, *_: object, **__: object) -> list[Any]:
        unknown = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
        return [ReadTask(self._messages, unknown)]

    def _messages(self) -> Iterator[pa.Table]:
        try:
            for stretch in self.unit.stretches(self.settings, self.source):
                yield _message(stretch_to_bytes(stretch))
        except EdgewiseError as error:  # as a message, so that Ray makes no stack trace of it
            yield _message(None, str(error))


class _Worker:
    """A process that predicts stretches."""

    def __init__(self, files: Any, *arguments: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name, content in ray.get(files).items():
                Path(folder, name).write_bytes(content)
            self.worker = StretchWorker(folder, *arguments)

    def __call__(self, batch: pa.Table) -> pa.Table:
        return pa.concat_tables(
            self._answer(content, error) for content, error in zip(*batch.columns, strict=True)
        )

    def _answer(self, content: Any, error: Any) -> pa.Table:
        if error.is_valid:
            return _message(None, error.as_py())
        try:
            return _message(self.worker.answer(content.as_buffer()))
        except EdgewiseError as failure:
            return _message(None, str(failure))
