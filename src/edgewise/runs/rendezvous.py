"""How the processes that train together find one another: started here, or by torchrun."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from edgewise.core.devices import find_device
from edgewise.core.errors import EdgewiseError
from edgewise.core.team import ALONE, Team, WorkerLost
from edgewise.core.torchrun import Place, launched
from edgewise.kernels.backend import num_threads, set_num_threads
from edgewise.kernels.shared_memory import SharedMemory, make_shared_file

TIMEOUT = timedelta(minutes=30)  # for an answer of a process that neither ends nor goes on
LOST = 3  # exit code of a worker whose team is gone
_FOLLOW = "import sys; from edgewise.runs.follow import main; main(*sys.argv[1:])"
_POLL = 0.05  # seconds
_PATIENCE = 5.0  # seconds in which the cause of a broken connection is looked for


def number_of_workers(asked: int | None) -> int:
    """How many processes are to train together: as many as the user says, or torchrun started."""
    place = launched()
    if place is None:
        return asked or 1
    if asked not in (None, place.workers):
        raise EdgewiseError(
            f"torchrun started {place.workers} workers, not {asked}; leave --workers out"
        )
    if place.rank:
        raise EdgewiseError(
            f"this is worker {place.rank} of torchrun, which cannot train for itself; start "
            "torchrun with -m edgewise train"
        )
    return place.workers


@dataclass(frozen=True, eq=False)
class Rendezvous:
    """Where the processes of a team leave word for one another before they are connected."""

    place: Place
    store: Any = None
    local: bool = False  # whether all of them are on this machine
    children: Sequence["subprocess.Popen[bytes]"] = ()
    _runs: list[int] = field(default_factory=lambda: [0])

    def ask(self, request: Any) -> None:
        """Tell the others what is to be trained; None: nothing more."""
        if self.store is not None:
            self.store.set(f"request/{self._runs[0]}", json.dumps(request))

    def asked(self) -> Any:
        """What the first process asks for, when it does; None: nothing more."""
        key = f"request/{self._runs[0]}"
        try:
            while not self.store.check([key]):
                time.sleep(_POLL)
            return json.loads(self.store.get(key))
        except RuntimeError:  # it has ended, and the store with it
            return None

    def fail(self, sentence: str) -> None:
        """Leave word of why this process ends."""
        with suppress(RuntimeError):
            self.store.set(f"failed/{self.place.rank}", sentence)

    @contextmanager
    def joined(self, device: torch.device) -> Iterator[Team]:
        """The team, when all of its processes have read their data."""
        if self.store is None:
            yield ALONE
            return
        number, workers = self._runs[0], self.place.workers
        self._runs[0] += 1
        try:
            self.store.add(f"ready/{number}", 1)
            while self.store.add(f"ready/{number}", 0) < workers:
                self._check_others()
                time.sleep(_POLL)
            with _on_loopback(self.local):
                dist.init_process_group(
                    "nccl" if device.type == "cuda" else "gloo",
                    store=dist.PrefixStore(f"run/{number}", self.store),
                    rank=self.place.rank,
                    world_size=workers,
                    timeout=TIMEOUT,
                )
            exchange = self._shared_memory(number) if device.type == "cpu" else None
        except RuntimeError as error:
            raise self._why() from error
        try:
            yield Team(self.place.rank, workers, device, self._why, exchange)
        finally:
            with suppress(RuntimeError):
                dist.destroy_process_group()

    def _shared_memory(self, number: int) -> SharedMemory | None:
        """Memory that all processes share; None where they are on several machines."""
        place, key = self.place, f"memory/{number}"
        if place.local_workers < place.workers:
            return None
        path = make_shared_file(place.workers) if place.rank == 0 else None
        if place.rank == 0:
            self.store.set(key, str(path or ""))
        found, named = None, self.store.get(key).decode()
        with suppress(OSError):
            found = SharedMemory(
                *(Path(named), place.rank, place.workers, self._check_others),
                patience=TIMEOUT.total_seconds(),
            )
        missed = torch.tensor([found is None])
        dist.all_reduce(missed, dist.ReduceOp.MAX)
        if path is not None:
            with suppress(OSError):  # where a file that is mapped cannot be deleted
                path.unlink()
        return None if bool(missed) else found

    def _check_others(self) -> None:
        found = self._cause() if self.place.rank == 0 else None
        if found is not None:
            raise found

    def _why(self) -> WorkerLost:
        """Why another process does not answer; that it ended may be known a moment later."""
        deadline = time.monotonic() + (_PATIENCE if self.place.rank == 0 else 0)
        while True:
            found = self._cause()
            if found is not None:
                return found
            if time.monotonic() >= deadline:
                return WorkerLost("a worker ended unexpectedly, and the others with it")
            time.sleep(_POLL)

    def _cause(self) -> WorkerLost | None:
        for rank in range(1, self.place.workers):
            with suppress(RuntimeError):
                if self.store.check([f"failed/{rank}"]):
                    sentence = self.store.get(f"failed/{rank}").decode()
                    return WorkerLost(f"worker {rank} failed: {sentence}")
        for rank, child in enumerate(self.children, start=1):
            code = child.poll()
            if code is not None and code < 0:
                return WorkerLost(f"worker {rank} was killed ({signal.Signals(-code).name})")
            if code not in (None, 0, LOST):
                return WorkerLost(f"worker {rank} ended with exit code {code}")
        return None


@contextmanager
def assembled(workers: int, device: str) -> Iterator[Rendezvous]:
    """Start the other processes, or find those that torchrun started, and share the processors.

    Args:
        workers: How many processes there are to be, this one included.
        device: What they compute on, by the name that a user gives it.
    """
    if workers == 1:
        yield Rendezvous(Place(0, 1, 0, 1))
        return
    if dist.is_available() and dist.is_initialized():
        raise EdgewiseError(
            "this process is in a process group of torch.distributed already; leave workers out, "
            "or start torchrun with -m edgewise train"
        )
    place = launched() or Place(0, workers, 0, workers)
    take_device(place, find_device(device))
    before = num_threads()
    threads = threads_of(place)
    set_num_threads(threads)
    try:
        if launched() is not None:
            yield torchrun()
        else:
            with _started(workers, threads) as rendezvous:
                yield rendezvous
    finally:
        set_num_threads(before)


@cache
def torchrun() -> Rendezvous:
    """The processes that torchrun started."""
    place = launched()
    assert place is not None
    store, _, _ = next(dist.rendezvous("env://", place.rank, place.workers, timeout=TIMEOUT))
    return Rendezvous(place, dist.PrefixStore("edgewise", store))


def release_others() -> None:
    """Where torchrun started this process: let the others go."""
    with suppress(RuntimeError):
        torchrun().ask(None)


def threads_of(place: Place) -> int:
    """An equal share of the machine's processors, or what the user says.

    torchrun itself sets ``OMP_NUM_THREADS`` to 1 where nobody has set it.
    """
    said = os.environ.get("OMP_NUM_THREADS", "")
    if launched() is None:
        most = min(num_threads(), int(said) if said.isdecimal() else num_threads())
        return max(1, most // place.local_workers)
    if said.isdecimal() and said != "1":
        return int(said)
    return max(1, _processors() // place.local_workers)


def take_device(place: Place, device: torch.device) -> None:
    """Take the GPU of this process's number; a device that processes cannot share is refused."""
    if device.type == "cpu":
        return
    if device.type != "cuda":
        raise EdgewiseError(
            f"several workers cannot train on the device {device}; choose cpu or cuda, or leave "
            "--workers out"
        )
    if torch.cuda.device_count() < place.local_workers:
        raise EdgewiseError(
            f"{place.local_workers} workers on one machine need as many GPUs, and there are "
            f"{torch.cuda.device_count()}; start fewer, or choose --device cpu"
        )
    torch.cuda.set_device(place.local_rank)


@contextmanager
def _started(workers: int, threads: int) -> Iterator[Rendezvous]:
    """The other processes, as children; they end with this one, however it ends."""
    package = Path(__file__).parents[2]
    paths = [str(package), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        **{name: str(threads) for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")},
    }
    children: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="edgewise-") as folder:
        path = str(Path(folder) / "store")
        try:
            for rank in range(1, workers):
                children.append(
                    subprocess.Popen(
                        [sys.executable, "-c", _FOLLOW, path, str(rank), str(workers)],
                        stdin=subprocess.PIPE,  # closed when this process ends
                        stdout=subprocess.DEVNULL,
                        env=environment,
                        start_new_session=True,  # Ctrl-C is for this process to handle
                    )
                )
            store = dist.FileStore(path, workers)
            yield Rendezvous(Place(0, workers, 0, workers), store, True, children)
        finally:
            _end(children)


def _end(children: Sequence["subprocess.Popen[bytes]"]) -> None:
    for child in children:
        assert child.stdin is not None
        with suppress(OSError):
            child.stdin.close()
    for child in children:
        try:
            child.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


@contextmanager
def _on_loopback(local: bool) -> Iterator[None]:
    """Processes of one machine need no network, and none of them should listen on it."""
    name = "GLOO_SOCKET_IFNAME"
    if not local or name in os.environ:
        yield
        return
    os.environ[name] = "lo0" if sys.platform == "darwin" else "lo"
    try:
        yield
    finally:
        del os.environ[name]


def _processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
