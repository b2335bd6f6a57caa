"""A process that trains along with the one that leads: it reads the same, and writes nothing."""

import hashlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from edgewise.core.devices import find_device
from edgewise.core.errors import EdgewiseError, out_of_memory
from edgewise.core.plugins import load_plugins, loaded_plugins
from edgewise.core.registries import UNITS
from edgewise.core.settings import Settings, load_settings
from edgewise.core.team import Team, WorkerLost
from edgewise.core.torchrun import Place
from edgewise.data.sources import Source, stored_source
from edgewise.kernels.backend import set_num_threads
from edgewise.runs.folder import opened_with
from edgewise.runs.rendezvous import LOST, Rendezvous, take_device, threads_of, torchrun
from edgewise.training.fitting import Fitting
from edgewise.training.portfolio import decided
from edgewise.training.trainer import make_trainer
from edgewise.units.base import Opened, Problem, Unit


def request(source: Source, settings: Settings, splits: Path | None = None) -> dict[str, Any]:
    """What another process needs to know to train along.

    Args:
        source: The data, which it reads itself.
        settings: As they are before the data decide any.
        splits: The file of a run that was begun, with its split.
    """
    source = source.absolute()
    return {
        "form": source.form,
        "places": source.places,
        "settings": settings.to_json(),
        "plugins": loaded_plugins(),
        "splits": splits.read_text() if splits is not None and splits.exists() else None,
    }


def check_same(team: Team, problem: Problem) -> None:
    """Refuse to train together on data that differ, such as on machines with their own copies."""
    if team.alone:
        return
    data = problem.data
    digest = hashlib.sha256(str((len(data), data.num_features, data.num_channels)).encode())
    for tensor in (problem.truth, *problem.split.parts().values()):
        digest.update(tensor.contiguous().numpy().tobytes())
    own = torch.frombuffer(bytearray(digest.digest()), dtype=torch.uint8)
    every = team.stacked(own.to(team.device))
    other = (every != every[0]).any(dim=1).nonzero()[:, 0].tolist()
    if other:
        raise EdgewiseError(
            f"worker {other[0]} reads other data than worker 0; give every machine the same files"
        )


def follow(rendezvous: Rendezvous) -> bool:
    """Train along in one run; False: there is none to come."""
    asked = rendezvous.asked()
    if asked is None:
        return False
    opened = _opened(asked, rendezvous.place)
    problem = opened.problem
    with rendezvous.joined(problem.data.device) as team:
        if not rendezvous.local:
            # torchrun hands signals on to all; the one that leads says when it ends.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
        check_same(team, problem)
        stop = team.agreed(lambda: False)
        problem = decided(problem, stop=stop, team=team)
        for member in range(problem.settings.training.ensemble):
            fitting = Fitting(make_trainer(problem, member, team))
            fitting.align()
            while not fitting.done and not stop():
                fitting.step()
            if not fitting.done:
                break
    return True


def follow_torchrun() -> int:
    """All runs that the process leads which torchrun started first; gives the exit code."""
    return _followed(torchrun(), forever=True)


def _opened(asked: Mapping[str, Any], place: Place) -> Opened:
    load_plugins(asked["plugins"])
    settings = load_settings(asked["settings"])
    take_device(place, find_device(settings.training.device))
    source = stored_source(asked["form"], asked["places"])
    unit: Unit = UNITS[source.unit_for(settings.data.predict)]
    if asked["splits"] is None:
        return unit.open(source, settings)
    with tempfile.TemporaryDirectory(prefix="edgewise-") as folder:
        splits = Path(folder) / "splits.json"
        splits.write_text(asked["splits"])
        return opened_with(splits, unit, source, settings)


def _followed(rendezvous: Rendezvous, *, forever: bool) -> int:
    """Follow, and leave word of what goes wrong for the process that leads, which tells it."""
    try:
        if not rendezvous.local:  # those that were started here know it from the environment
            set_num_threads(threads_of(rendezvous.place))
        while follow(rendezvous) and forever:
            pass
    except WorkerLost:
        return LOST
    except EdgewiseError as error:
        rendezvous.fail(str(error))
        return 2
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            rendezvous.fail(f"{type(error).__name__}: {error}".splitlines()[0])
            raise
        rendezvous.fail("there was not enough memory; start fewer workers")
        return 2
    return 0


def _end_with_parent(store: Path) -> None:
    """End when the process that started this one does: its end of the pipe is closed then."""
    os.read(0, 1)
    shutil.rmtree(store.parent, ignore_errors=True)  # it may have been killed
    os._exit(LOST)


def main(path: str, rank: str, workers: str) -> None:
    """Train along with the process that started this one, for ``edgewise train --workers``."""
    threading.Thread(target=_end_with_parent, args=[Path(path)], daemon=True).start()
    place = Place(int(rank), int(workers), int(rank), int(workers))
    code = _followed(Rendezvous(place, dist.FileStore(path, int(workers)), True), forever=False)
    os._exit(code)  # there is nothing to be put in order, and somebody waits
