"""What became of the trials of a search."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import TrialState

from edgewise.core.settings import Settings
from edgewise.core.spreadsheet import inert
from edgewise.tasks.base import Task

KILLED = "its process was killed"


@dataclass(frozen=True)
class Trial:
    """What became of some settings."""

    number: int
    state: str  # complete, pruned, failed or interrupted
    value: float | None  # the best validation score, its mean over the repeats
    settings: dict[str, Any]
    epochs: int
    seconds: float
    reason: str  # why it failed or was interrupted


@dataclass(frozen=True)
class Tuned:
    """A search as far as it went."""

    folder: Path
    task: Task
    base: Settings  # the settings that every trial starts from
    names: tuple[str, ...]  # of the settings that were searched
    trials: tuple[Trial, ...]

    @property
    def ranking(self) -> list[Trial]:
        """The trials that went to their end, best first."""
        sign = 1 if self.task.lower_is_better else -1
        complete = [trial for trial in self.trials if trial.state == "complete"]
        return sorted(complete, key=lambda trial: sign * (trial.value or 0.0))

    @property
    def counted(self) -> int:
        """How many trials were made; those that were interrupted are made again."""
        return sum(trial.state != "interrupted" for trial in self.trials)

    def settings(self, trial: Trial) -> Settings:
        return self.base.changed(**trial.settings)


def as_trial(trial: optuna.trial.FrozenTrial) -> Trial:
    """What Optuna knows about a trial that ended."""
    reason = trial.user_attrs.get("reason", KILLED)
    state = {
        TrialState.COMPLETE: "complete",
        TrialState.PRUNED: "failed" if reason else "pruned",
    }.get(trial.state, "interrupted")
    return Trial(
        trial.number,
        state,
        None if state in ("failed", "interrupted") else trial.value,
        {name: rounded(value) for name, value in trial.params.items()},
        trial.user_attrs.get("epochs", len(trial.intermediate_values)),
        trial.user_attrs.get("seconds", 0.0),
        reason,
    )


def rounded(value: Any) -> Any:
    """Three digits are enough to find, and shorter to read."""
    return float(f"{value:.3g}") if isinstance(value, float) else value


def as_csv(so_far: Tuned) -> str:
    """A line for each trial."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["number", "state", "value", *so_far.names, "epochs", "seconds", "reason"])
    for t in so_far.trials:
        settings = [t.settings.get(name) for name in so_far.names]
        writer.writerow(
            [t.number, t.state, t.value, *settings, t.epochs, t.seconds, inert(t.reason)]
        )
    return text.getvalue()


def nothing_found(so_far: Tuned) -> str:
    """Why a search has no result."""
    reasons = [trial.reason for trial in so_far.trials if trial.state == "failed"]
    if reasons:
        return f"all {len(reasons)} trials failed; the last one: {reasons[-1]}"
    return (
        "the search ended before a trial did, so there are no settings yet; the same command "
        f"goes on in {so_far.folder}"
    )
