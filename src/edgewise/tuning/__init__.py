"""Search for settings that do well on the validation set. Needs Optuna."""

from edgewise.core.errors import missing_extra

try:
    import optuna  # noqa: F401
except ImportError as error:
    raise missing_extra("optuna", "tune", "edgewise tune") from error

from edgewise.tuning.search import tune
from edgewise.tuning.trials import Trial, Tuned

__all__ = ["Trial", "Tuned", "tune"]
