"""The search: draw settings, train, tell the sampler, keep the best."""

import math
import statistics
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.trial import TrialState

from edgewise.core.config import write_config
from edgewise.core.errors import EdgewiseError, out_of_memory, preview
from edgewise.core.files import alone_in, write_atomically
from edgewise.core.settings import Settings
from edgewise.data.sources import Source
from edgewise.training import Epoch, Fitting, make_trainer
from edgewise.tuning.space import SPACE
from edgewise.tuning.study import check_purpose, open_study, quiet_optuna
from edgewise.tuning.trials import KILLED, Trial, Tuned, as_csv, as_trial, nothing_found, rounded
from edgewise.units.base import Opened, Problem, Show, Unit

OnEpoch = Callable[[int, Epoch, Tuned], None]  # number of the trial, its epoch, all that ended
OnTrial = Callable[[Trial, Tuned], None]  # the trial that ended, and all that ended


def tune(
    source: Source,
    unit: Unit,
    base: Settings,
    fixed: Collection[str],
    folder: str | Path,
    *,
    trials: int = 30,
    repeats: int = 1,
    timeout: float | None = None,
    storage: str = "",
    progress: Show | None = None,
    on_open: Callable[[Opened], None] = lambda _: None,
    on_epoch: OnEpoch = lambda number, epoch, so_far: None,
    on_trial: OnTrial = lambda trial, so_far: None,
    stop: Callable[[], bool] = lambda: False,
) -> Tuned:
    """Search for the settings with the best score on the validation set.

    The first trial is ``base`` itself, without a choice of regimes. The folder holds what was found
    after every trial: ``best.toml``, settings for ``edgewise train --config``, and ``trials.csv``.
    The same call continues a search that was stopped or killed, and draws what it would have drawn.

    Args:
        source: The data. Their test set is not looked at.
        unit: What a row of them is.
        base: Settings that every trial starts from.
        fixed: Names of settings that are not searched.
        folder: Where the search is kept.
        trials: How many there are to be in all.
        repeats: Trainings of a trial, which differ in their initial weights and dropout.
        timeout: Seconds after which no trial is begun.
        storage: A place that several processes or machines share: a file for a journal, or a URL
            that Optuna understands. All of them make the trials, and end when there are enough.
        progress: Called while molecules are read.
        on_open: Called before the search begins.
        on_epoch: Called after each epoch.
        on_trial: Called after each trial.
        stop: Asked after each epoch whether to end the search.

    Raises:
        EdgewiseError: If no trial came to its end, or the folder holds another search.
    """
    for name, value in (("trials", trials), ("repeats", repeats), ("timeout", timeout)):
        if value is not None and value <= 0:
            raise EdgewiseError(f"{name} = {value} is out of range; it must be above 0")
    start = time.monotonic()
    if base.model.regime == "auto":  # trials differ in what a regime would decide
        base = base.changed(regime="given")
    opened = unit.open(source, base, progress)
    if not len(opened.problem.split.validation):
        raise EdgewiseError(
            "no row with a known target is left for validation, so settings cannot be compared; "
            "choose another --split"
        )
    with _in_folder(Path(folder), storage), quiet_optuna():
        kind = _kind_of(storage)
        search = kind(Path(folder), source, base, fixed, repeats, opened.problem, storage)
        on_open(opened)
        while search.so_far.counted < trials and not stop():
            if timeout is not None and time.monotonic() - start >= timeout:
                break
            trial = search.run_trial(on_epoch, stop, trials)
            if trial is not None:
                on_trial(trial, search.so_far)
        search.write()  # also what others found last
    if not search.so_far.ranking:
        raise EdgewiseError(nothing_found(search.so_far))
    return search.so_far


def _kind_of(storage: str) -> "type[Search]":
    if not storage:
        return Search
    from edgewise.tuning.shared import SharedSearch  # which is a Search itself

    return SharedSearch


@contextmanager
def _in_folder(folder: Path, storage: str) -> Iterator[None]:
    """The folder of a search, which nobody else uses; one of a shared search anybody may write."""
    if not storage:
        with alone_in(folder, "search"):
            yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EdgewiseError(
            f"cannot write into {folder} ({error.strerror or error}); choose another --out"
        ) from error
    yield


_KILLS = 6  # of the first trial before its first epoch, until the search goes on without it


class _Stopped(Exception):
    """The user wants no more epochs."""


class Search:
    """An Optuna study in its folder."""

    def __init__(
        self,
        folder: Path,
        source: Source,
        base: Settings,
        fixed: Collection[str],
        repeats: int,
        problem: Problem,
        storage: str = "",
    ) -> None:
        self.folder, self.source, self.base, self.repeats = folder, source, base, repeats
        self.storage = storage
        self.unit = problem.unit
        self.task, self.problems = problem.task, {base.model.featurizer: problem}
        self.space = [
            searched
            for searched in SPACE
            if searched.name not in fixed and searched.holds(source, self.unit, self.task)
        ]
        if not self.space:
            names = ", ".join(searched.name for searched in SPACE)
            raise EdgewiseError(f"nothing is left to search; do not give all of {names}")
        self._check_base()
        self.space = check_purpose(folder, source, base, repeats, self.space)
        self.study = self.open_study()
        self.end_running()
        self.write()

    def open_study(self) -> optuna.Study:
        return open_study(self.folder, self.task, self.base)

    def end_running(self) -> None:
        """Trials that run are those of a killed process, for this one is alone in the folder."""
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            self.study.tell(trial.number, state=TrialState.FAIL)

    @contextmanager
    def while_running(self, trial: optuna.Trial) -> Iterator[None]:
        """What goes on beside a trial."""
        yield

    @property
    def so_far(self) -> Tuned:
        names = tuple(searched.name for searched in self.space)
        frozen = self.study.get_trials(deepcopy=False)
        ended = tuple(as_trial(trial) for trial in frozen if trial.state.is_finished())
        return Tuned(self.folder, self.task, self.base, names, ended)

    def run_trial(self, on_epoch: OnEpoch, stop: Callable[[], bool], trials: int) -> Trial | None:
        """Make one trial of so many in all; None: others make the last ones."""
        so_far, trial, start = self.so_far, self.ask(trials), time.monotonic()
        if trial is None:
            return None
        history: list[Epoch] = []

        def keep(epoch: Epoch) -> None:
            history.append(epoch)
            on_epoch(trial.number, epoch, so_far)
            if stop():
                raise _Stopped

        # To the sampler a failure is pruned: it is to look elsewhere.
        state, value, reason = TrialState.PRUNED, None, ""
        try:
            with self.while_running(trial):
                value = self._value(trial, self._draw(trial), keep)
            state = TrialState.COMPLETE
        except optuna.TrialPruned:
            pass
        except _Stopped:
            state, reason = TrialState.FAIL, "it was stopped"
        except EdgewiseError as error:
            reason = str(error)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            reason = "there was not enough memory; fix a smaller hidden, or layer = conv"
        trial.set_user_attr("epochs", len(history))
        trial.set_user_attr("seconds", round(time.monotonic() - start, 3))
        trial.set_user_attr("reason", reason)
        frozen = self.study.tell(trial, value, state=state)
        self.write()
        return as_trial(frozen)

    def write(self) -> None:
        """Bring ``best.toml`` and ``trials.csv`` up to date."""
        so_far = self.so_far
        write_atomically(self.folder / "trials.csv", as_csv(so_far))
        if so_far.ranking:
            write_config(self.folder / "best.toml", so_far.settings(so_far.ranking[0]))

    def _check_base(self) -> None:
        """Refuse to begin at a setting that is not among those searched."""
        base = self.base.flat()
        for searched in self.space:
            value = base[searched.name]
            asked = searched.holds_now(self.base)
            if asked and isinstance(searched.among, tuple) and value not in searched.among:
                raise EdgewiseError(
                    f"{searched.name} = {value!r} is not among what is searched, "
                    f"{preview(searched.among)}; fix it, or begin with one of these"
                )

    def ask(self, trials: int) -> optuna.Trial | None:
        """The next trial of so many in all."""
        so_far = self.so_far
        killed = sum(trial.reason == KILLED for trial in so_far.trials)
        # Seeded by its place, so that a search that was stopped goes on as if it had not been; but
        # what was killed, perhaps because it was too large, is not drawn once more.
        words = np.random.SeedSequence(
            (self.base.training.seed, so_far.counted, killed)
        ).generate_state(1)
        self.study.sampler = optuna.samplers.TPESampler(seed=int(words[0]))
        waiting = self.study.get_trials(deepcopy=False, states=(TrialState.WAITING,))
        failed = self.study.get_trials(deepcopy=False, states=(TrialState.FAIL,))
        stuck = sum(not trial.intermediate_values for trial in failed)
        # The preset comes first, also after a kill; but not for ever, if it is too large.
        if not so_far.counted and stuck < _KILLS and not waiting:
            base = self.base.flat()
            self.study.enqueue_trial({s.name: base[s.name] for s in self.space})
        return self.study.ask()

    def _draw(self, trial: optuna.Trial) -> dict[str, Any]:
        drawn: dict[str, Any] = {}
        for searched in self.space:
            if searched.holds_now(self.base.changed(**drawn)):
                drawn[searched.name] = rounded(searched.suggest(trial))
        return drawn

    def _value(
        self, trial: optuna.Trial, drawn: dict[str, Any], keep: Callable[[Epoch], None]
    ) -> float:
        problem, values = self._problem(drawn), []
        for member in range(self.repeats):
            fitting = Fitting(make_trainer(problem, member))
            while not fitting.done:
                keep(fitting.step())
                best = self._best(fitting.history)
                if member == 0 and best is not None:
                    trial.report(best, len(fitting.history))
                    if trial.should_prune():
                        raise optuna.TrialPruned
            if best is None:
                raise EdgewiseError(
                    f"the validation set is too small for a {self.task.headline}; choose another "
                    "--split"
                )
            values.append(best)
        return statistics.fmean(values)

    def _best(self, history: list[Epoch]) -> float | None:
        scores = [e.validation_score for e in history if not math.isnan(e.validation_score)]
        return (min if self.task.lower_is_better else max)(scores, default=None)

    def _problem(self, drawn: dict[str, Any]) -> Problem:
        """The problem under other settings; molecules are read once for each featuriser."""
        settings = self.base.changed(**drawn)
        kind = settings.model.featurizer
        if kind not in self.problems:
            self.problems[kind] = self.unit.open(self.source, settings).problem
        problem = self.problems[kind]
        return replace(problem, settings=problem.settings.changed(**drawn))
