"""Which rows are for training, validation and test: drawn, by a column, by a file, by scaffold."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.core.settings import Settings
from edgewise.data.splits import Split, random_split
from edgewise.tasks.base import Task

_SHARES = ("dense", "sparse", "molecules")


def is_file(split: str) -> bool:
    """Whether the setting ``split`` names a file."""
    return split.endswith(".json") or Path(split).is_file()


def drawn_split(settings: Settings, task: Task, truth: Tensor, others: Sequence[str] = ()) -> Split:
    """A random split by its name or its shares.

    Args:
        settings: Which split.
        task: What is predicted.
        truth: Its truth; rows of which nothing is known are left out.
        others: Names of splits that the unit has beside the random ones, for the message.
    """
    split = settings.split.split
    stratify = None
    if settings.split.stratify:
        if truth.dim() > 1 and truth.size(1) > 1:
            raise EdgewiseError("several targets cannot be balanced at once; set stratify = false")
        stratify = truth.reshape(-1)
    kind: str | list[float] = split
    if "," in split:
        try:
            kind = [float(share) for share in split.split(",")]
        except ValueError as error:
            raise EdgewiseError(
                f"split = {split!r} is not three shares; write 0.8,0.1,0.1"
            ) from error
    elif split not in _SHARES:
        raise EdgewiseError(
            f"split = {split!r} is unknown here; choose {', '.join((*_SHARES, *others))}, three "
            "shares such as 0.8,0.1,0.1, or a JSON file that exists"
        )
    return random_split(
        task.labelled_rows(truth), kind, seed=split_seed(settings), stratify=stratify
    )


def split_seed(settings: Settings) -> int:
    """The seed of the split, by default that of the training."""
    own = settings.split.split_seed
    return settings.training.seed if own is None else own
