"""The run folder: settings, checkpoints, results. A run may be killed anywhere and continued."""

from edgewise.runs.folder import (
    Run,
    check_data,
    check_free,
    forget_untrained,
    open_run,
    reopen,
    start_run,
)
from edgewise.runs.training import OnEpoch, train_run

__all__ = [
    "OnEpoch",
    "Run",
    "check_data",
    "check_free",
    "forget_untrained",
    "open_run",
    "reopen",
    "start_run",
    "train_run",
]
