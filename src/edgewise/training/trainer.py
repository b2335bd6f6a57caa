"""One epoch of one model, whatever its rows are: batches in, losses out."""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from edgewise.core.seeds import seeded
from edgewise.graphs.batch import computed_rows
from edgewise.kernels.memory import reuse_freed_memory
from edgewise.nn.network import Network
from edgewise.training.optimizer import Adam
from edgewise.units.base import Problem

SMALLEST_BATCH = 0.25  # of the batch size, with batch normalisation
OPTIMIZERS: dict[str, Any] = {"adam": Adam, "adamw": partial(Adam, decoupled=True)}


def _constant(step: int, steps: int, warmup: float) -> float:
    return 1.0


def _cosine(step: int, steps: int, warmup: float) -> float:
    """Linear warm-up, then cosine decay to 0."""
    rising = max(1, int(warmup * steps))
    falling = max(step - rising, 0) / max(steps - rising, 1)
    return min((step + 1) / rising, 0.5 * (1 + math.cos(math.pi * falling)))


SCHEDULES = {"constant": _constant, "cosine": _cosine}


class Trainer:
    """One model and its optimiser on one problem."""

    def __init__(self, problem: Problem, model: Network, member: int = 0) -> None:
        reuse_freed_memory()
        self.problem, self.member = problem, member
        self.task, self.split, self.settings = problem.task, problem.split, problem.settings
        device = problem.data.device
        self.model, self.truth = model.to(device), problem.truth.to(device)
        training = self.settings.training
        self.weight = None
        if training.weighted:
            self.weight = self.task.balance(problem.truth[self.split.train]).to(device)
        self.optimizer = OPTIMIZERS[training.optimizer](
            [
                {"params": model.weights(), "weight_decay": training.weight_decay},
                {"params": model.biases(), "weight_decay": 0.0},
            ],
            training.learning_rate,
        )

    def train_epoch(self, epoch: int) -> float:
        """Go over the training rows once; gives the training loss."""
        training = self.settings.training
        losses = []
        # Seeded by its number, so that an epoch draws the same whatever ran before it.
        with seeded(training.seed, self.member, epoch):
            self.model.train()
            data, train = self.problem.data, self.split.train
            steps = data.steps(len(train), training.batch_size)
            batches = data.training_batches(train, training.batch_size)
            for number, (rows, batch) in enumerate(batches):
                if number and self._says_too_little(rows):
                    continue
                self._set_learning_rate((epoch - 1) * steps + number, steps * training.epochs)
                loss = self._step(self.model(batch), self.truth[rows.to(self.truth.device)])
                losses.append((len(rows), loss))
        # Read when all is done: a device need not be waited for in between.
        if len(losses) == 1:
            return float(losses[0][1])
        return sum(count * float(loss) for count, loss in losses) / sum(n for n, _ in losses)

    def _says_too_little(self, rows: Tensor) -> bool:
        """Whether a last batch is too small for batch normalisation; its rows change by epoch."""
        few = len(rows) < SMALLEST_BATCH * self.settings.training.batch_size
        return few and self.settings.model.norm == "batch"

    def _set_learning_rate(self, step: int, steps: int) -> None:
        """By the number of the step alone, so that a run that is resumed needs no state."""
        training = self.settings.training
        factor = SCHEDULES[training.schedule](step, steps, training.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = factor * training.learning_rate

    def _step(self, outputs: Tensor, truth: Tensor) -> Tensor:
        loss = self.task.loss(outputs, truth, self.weight)
        self.optimizer.zero_grad()
        loss.backward()
        if self.settings.training.clip > 0:
            clip_grad_norm_(self.model.parameters(), self.settings.training.clip)
        self.optimizer.step()
        return loss.detach()

    def validate(self) -> tuple[float, float]:
        """Loss and headline metric of the validation rows."""
        rows = self.split.validation
        outputs, truth = self.outputs(rows), self.truth[rows.to(self.truth.device)]
        # Weighted like the training loss, for it decides about the same thing.
        loss = float(self.task.loss(outputs, truth, self.weight))
        decoded = self.task.decode(outputs).cpu().numpy()
        return loss, self.task.score(decoded, truth.cpu().numpy())

    def outputs(self, rows: Tensor | None = None) -> Tensor:
        """Outputs of some rows, or of all."""
        every = torch.arange(len(self.problem.data)) if rows is None else rows
        return model_outputs(self.model, self.problem, every)


@torch.no_grad()
def model_outputs(model: Network, problem: Problem, rows: Tensor) -> Tensor:
    """The outputs of a model for some rows of a problem, in their order."""
    model.eval()
    found = computed_rows(problem.data, rows, model)
    empty = torch.zeros(0, problem.task.width, device=problem.data.device)
    return empty if found is None else found


def make_trainer(problem: Problem, member: int = 0) -> Trainer:
    """A trainer with fresh weights; members of an ensemble differ in their random numbers."""
    data, settings = problem.data, problem.settings
    with seeded(settings.training.seed, member, 0):
        model = problem.unit.network(
            data.num_features, problem.task.width, data.num_channels, settings
        )
    return Trainer(problem, model, member)
