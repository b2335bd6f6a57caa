"""A search that several processes or machines share through a storage of Optuna's."""

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import optuna
from optuna.exceptions import DuplicatedStudyError, UpdateFinishedTrialError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import inside
from edgewise.training.weights import reason_of
from edgewise.tuning.search import OnEpoch, Search
from edgewise.tuning.study import pruner_of
from edgewise.tuning.trials import Trial, as_trial

BEAT = 15.0  # seconds between two signs of life of a trial
LOST = 90.0  # seconds without one, after which its process is taken for dead
_PAUSE = 1.0  # seconds between two looks at what the others do
_ATTEMPTS = 3  # to open a data base beside others
_RETRIES = 2  # of settings whose processes were lost, perhaps because of them
_SURPLUS = "others had begun the last trials"


class SharedSearch(Search):
    """One process of a search whose study lies in ``storage``."""

    def open_study(self) -> optuna.Study:
        try:
            study = self._opened_study()
        except Exception as error:  # whatever Optuna or a data base stumbles over
            place = re.sub(r"://[^@/]*@", "://***@", self.storage)
            raise EdgewiseError(
                f"the storage {place} cannot be used ({reason_of(error)}); give a path, or a URL "
                "that Optuna understands, with its driver installed"
            ) from error
        study.pruner = pruner_of(self.base)
        return study

    def _opened_study(self) -> optuna.Study:
        name = f"edgewise {_digest(self.folder)}"
        direction = "minimize" if self.task.lower_is_better else "maximize"
        storage = _storage(self.storage)
        try:
            study = optuna.create_study(
                storage=storage,
                study_name=name,
                direction=direction,  # type: ignore[arg-type]
            )
        except DuplicatedStudyError:
            return optuna.load_study(study_name=name, storage=storage)
        # Begun by this process alone; the preset comes first.
        base = self.base.flat()
        study.enqueue_trial({s.name: base[s.name] for s in self.space})
        return study

    def run_trial(self, on_epoch: OnEpoch, stop: Callable[[], bool], trials: int) -> Trial | None:
        try:
            return super().run_trial(on_epoch, stop, trials)
        except UpdateFinishedTrialError:  # others took this process for dead, and go on themselves
            return None

    def ask(self, trials: int) -> optuna.Trial | None:
        self._give_up_lost()
        under_way = self._numbers()
        waiting = self.study.get_trials(deepcopy=False, states=(TrialState.WAITING,))
        if len(under_way) >= trials and not waiting:
            time.sleep(_PAUSE)
            return None
        trial = self.study.ask()
        # Another process may have asked at the same time: the numbers say who came first.
        if trial.number not in self._numbers()[:trials]:
            trial.set_user_attr("reason", _SURPLUS)
            self.study.tell(trial, state=TrialState.FAIL)
            return None
        words = np.random.SeedSequence((self.base.training.seed, trial.number)).generate_state(1)
        self.study.sampler = optuna.samplers.TPESampler(seed=int(words[0]), constant_liar=True)
        return trial

    @contextmanager
    def while_running(self, trial: optuna.Trial) -> Iterator[None]:
        ended = threading.Event()

        def signs_of_life() -> None:
            while not ended.wait(BEAT):
                with suppress(Exception):  # a storage that is away for a moment
                    trial.set_user_attr("alive", time.time())

        trial.set_user_attr("alive", time.time())
        thread = threading.Thread(target=signs_of_life, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def end_running(self) -> None:
        """Trials that run are those of others."""

    def _numbers(self) -> list[int]:
        """Of the trials that count already, or will."""
        return sorted(
            trial.number
            for trial in self.study.get_trials(deepcopy=False)
            if not trial.state.is_finished() or as_trial(trial).state != "interrupted"
        )

    def _give_up_lost(self) -> None:
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if time.time() - _last_sign(trial) <= LOST:
                continue
            try:
                self.study.tell(trial.number, state=TrialState.FAIL)
            except (ValueError, RuntimeError):
                continue  # it ended, or another process was first
            retries = trial.user_attrs.get("retries", 0) + 1
            if retries <= _RETRIES:
                self.study.enqueue_trial(trial.params, user_attrs={"retries": retries})


def _last_sign(trial: FrozenTrial) -> float:
    begun = trial.datetime_start.timestamp() if trial.datetime_start else time.time()
    return float(trial.user_attrs.get("alive", begun))


def _storage(place: str) -> BaseStorage:
    scheme, mark, rest = place.partition("://")
    if mark and scheme != "journal":
        return _data_base(place)
    return JournalStorage(JournalFileBackend(rest if mark else place))


def _data_base(url: str) -> RDBStorage:
    """A storage whose tables may be made by several processes at the same moment."""
    from sqlalchemy.exc import IntegrityError, ProgrammingError

    for _ in range(_ATTEMPTS):
        with suppress(IntegrityError, ProgrammingError):  # another process was first
            return RDBStorage(url, engine_kwargs={"pool_pre_ping": True})
        time.sleep(_PAUSE)
    return RDBStorage(url, engine_kwargs={"pool_pre_ping": True})


def _digest(folder: Path) -> str:
    """Of what a search is for, wherever its data lie: another search has another study."""
    purpose = json.loads(inside(folder, "study.json").read_text())
    del purpose["data"]["places"]
    return hashlib.sha256(json.dumps(purpose, sort_keys=True).encode()).hexdigest()[:12]
