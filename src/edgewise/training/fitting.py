"""A model on its way from epoch to epoch, so that it can be stopped and continued anywhere."""

import math
from dataclasses import astuple, dataclass

import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.training.trainer import Trainer, make_trainer
from edgewise.training.weights import today
from edgewise.units.base import Problem


@dataclass(frozen=True)
class Epoch:
    """One line of a run's history. NaN stands for what was not measured."""

    number: int
    train_loss: float
    validation_loss: float
    validation_score: float  # the task's headline metric


class Fitting:
    """A model on its way: history and best weights so far, and all of it as tensors."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.settings = trainer, trainer.settings.training
        self.history: list[Epoch] = []
        self.best_weights = self._weights()

    @property
    def best(self) -> Epoch | None:
        """The epoch whose weights are kept: the best on validation rows, or the last one."""
        if self.history and (not len(self.trainer.split.validation) or self._ended_as_planned):
            return self.history[-1]
        return min(self.history, key=self._rank, default=None)

    @property
    def _ended_as_planned(self) -> bool:
        """Whether the last epoch is there, and its weights are those to keep."""
        return self.settings.monitor == "last" and len(self.history) == self.settings.epochs

    def _rank(self, epoch: Epoch) -> tuple[float, float]:
        """Lower is better; of equal scores the one with the lower loss."""
        score = epoch.validation_score
        if self.settings.monitor != "score" or math.isnan(score):
            return 0.0, epoch.validation_loss
        return score if self.trainer.task.lower_is_better else -score, epoch.validation_loss

    @property
    def done(self) -> bool:
        """Whether the epochs are used up, or nothing got better for ``patience`` of them."""
        best, count = self.best, len(self.history)
        if best is None or count < self.settings.epochs:
            return best is not None and count - best.number >= self.settings.patience
        return True

    def step(self) -> Epoch:
        """Train one more epoch and validate."""
        number = len(self.history) + 1
        train_loss = self.trainer.train_epoch(number)
        validated = len(self.trainer.split.validation) > 0
        loss, validation_score = self.trainer.validate() if validated else (math.nan, math.nan)
        losses = {"loss": train_loss} | ({"validation loss": loss} if validated else {})
        for name, value in losses.items():
            if not math.isfinite(value):
                raise EdgewiseError(
                    f"training diverged in epoch {number} ({name} {value}); lower the "
                    f"learning_rate, which is {self.settings.learning_rate:g}"
                )
        epoch = Epoch(number, train_loss, loss, validation_score)
        self.history.append(epoch)
        if self.best is epoch:
            self.best_weights = self._weights()
        return epoch

    def _weights(self) -> dict[str, Tensor]:
        return {k: v.detach().cpu().clone() for k, v in self.trainer.model.state_dict().items()}

    def restore_best(self) -> None:
        """Put the best weights into the model."""
        self.trainer.model.load_state_dict(self.best_weights)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that the next epoch depends on."""
        lines = [astuple(epoch) for epoch in self.history]
        state = self.trainer.optimizer.state
        return {
            "history": torch.tensor(lines, dtype=torch.float64).reshape(-1, 4),
            **{f"model.{k}": v for k, v in self._weights().items()},
            **{f"best.{k}": v for k, v in self.best_weights.items()},
            **{f"adam.{i}.{k}": v for i, slots in state.items() for k, v in slots.items()},
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Continue where :meth:`tensors` was taken."""
        self.history = [Epoch(int(n), *rest) for n, *rest in tensors["history"].tolist()]
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "adam": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition(".")
            if part in parts:
                parts[part][today(rest)] = tensor
        self.trainer.model.load_state_dict(parts["model"])
        self.best_weights = parts["best"]
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in parts["adam"].items():
            index, _, slot = name.partition(".")
            state.setdefault(int(index), {})[slot] = tensor
        self.trainer.optimizer.restore(state)

    def align(self) -> None:
        """Start from what the first process of a team has: its weights, or what it restored."""
        team = self.trainer.team
        if not team.alone:
            found = team.led_tensors(self.tensors())
            if not team.leads:
                self.restore(found)


def fit_member(problem: Problem, member: int = 0) -> Fitting:
    """Train one model to its end; its best weights are in place."""
    fitting = Fitting(make_trainer(problem, member))
    while not fitting.done:
        fitting.step()
    fitting.restore_best()
    return fitting
