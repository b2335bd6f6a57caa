"""One epoch of one model, whatever its rows are: batches in, losses out."""

import math
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from edgewise.core.seeds import seeded
from edgewise.core.team import ALONE, Team
from edgewise.graphs.batch import computed_rows
from edgewise.graphs.share import Share
from edgewise.kernels.memory import reuse_freed_memory
from edgewise.nn.batch_norm import BatchNorm
from edgewise.nn.network import Network
from edgewise.training.optimizer import Adam, clip_gradients
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
    """One model and its optimiser on one problem.

    Of a team, each process computes its share of every batch; gradients are summed up, so that a
    step is that of the whole batch, and the weights are the same in all processes.
    """

    def __init__(
        self, problem: Problem, model: Network, member: int = 0, team: Team = ALONE
    ) -> None:
        reuse_freed_memory()
        self.problem, self.member, self.team = problem, member, team
        self.share = Share(team.rank, team.workers)
        self._norms = [module for module in model.modules() if isinstance(module, BatchNorm)]
        self.task, self.split, self.settings = problem.task, problem.split, problem.settings
        device = problem.data.device
        self.model, self.truth = model.to(device), problem.truth.to(device)
        self._parameters = list(model.parameters())  # looking for them takes a while
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
            batches = data.training_batches(train, training.batch_size, self.share)
            for number, (rows, batch) in enumerate(batches):
                if number and self._says_too_little(rows):
                    continue
                self._set_learning_rate((epoch - 1) * steps + number, steps * training.epochs)
                with self._of_worker(epoch, number, rows):
                    loss = self._step(self.model(batch), rows)
                losses.append((len(rows), loss))
        # Read when all is done: a device need not be waited for in between.
        if len(losses) == 1:
            return float(losses[0][1])
        return sum(count * float(loss) for count, loss in losses) / sum(n for n, _ in losses)

    def _says_too_little(self, rows: Tensor) -> bool:
        """Whether a last batch is too small for batch normalisation; its rows change by epoch."""
        if self.problem.data.whole_graph or self.settings.model.norm != "batch":
            return False
        return len(rows) < SMALLEST_BATCH * self.settings.training.batch_size

    def _set_learning_rate(self, step: int, steps: int) -> None:
        """By the number of the step alone, so that a run that is resumed needs no state."""
        training = self.settings.training
        factor = SCHEDULES[training.schedule](step, steps, training.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = factor * training.learning_rate

    def _of_worker(self, epoch: int, number: int, rows: Tensor) -> AbstractContextManager[None]:
        """Draws of a process's own, apart from those of the batches, which all draw alike."""
        if self.team.alone:
            return nullcontext()
        divided = self.share.divides(rows)
        for norm in self._norms:
            norm.team = self.team if divided else ALONE
        own = self.team.rank if divided else 0
        return seeded(self.settings.training.seed, self.member, epoch, number, own)

    def _step(self, outputs: Tensor, rows: Tensor) -> Tensor:
        truth = self._truth(self.share.of(rows))
        loss = self.task.loss(outputs, truth, self.weight)
        if not self.team.alone:
            loss = loss * self._portion(truth, rows).to(loss.dtype)
        self.optimizer.zero_grad()
        loss.backward()
        loss = loss.detach()
        if not self.team.alone:
            loss = self._summed_gradients(loss)
        if self.settings.training.clip > 0:
            clip_gradients(self._parameters, self.settings.training.clip)
        self.optimizer.step()
        return loss

    def _truth(self, rows: Tensor) -> Tensor:
        return self.truth[rows.to(self.truth.device)]

    def _portion(self, truth: Tensor, rows: Tensor) -> Tensor:
        """How much the loss of this process's rows counts in that of the whole batch."""
        if not self.share.divides(rows):
            return torch.tensor(1 / self.team.workers, dtype=torch.float64)
        whole = self.task.loss_count(self._truth(rows), self.weight)
        own = self.task.loss_count(truth, self.weight)
        return own.double() / whole.double().clamp(min=1e-30)

    def _summed_gradients(self, loss: Tensor) -> Tensor:
        """Put the gradient of the whole batch in place of that of a share; gives its loss."""
        learnt = [(p, p.grad) for p in self._parameters if p.grad is not None]
        own = torch.cat([*(grad.flatten() for _, grad in learnt), loss.view(1)])
        *parts, total = self.team.summed(own).split([*(p.numel() for p, _ in learnt), 1])
        for (parameter, _), part in zip(learnt, parts, strict=True):
            parameter.grad = part.view_as(parameter)
        return total[0]

    def validate(self) -> tuple[float, float]:
        """Loss and headline metric of the validation rows."""
        rows = self.split.validation
        outputs, truth = self.outputs(self.share.of(rows)), self._truth(rows)
        if self.share.divides(rows) and not self.team.alone:
            outputs = self.team.concatenated(outputs)
        # Weighted like the training loss, for it decides about the same thing.
        loss = float(self.task.loss(outputs, truth, self.weight))
        decoded = self.task.decode(outputs).cpu().numpy()
        score = self.task.score(decoded, truth.cpu().numpy())
        # Of one process: others may round differently, and would end at another epoch.
        loss, score = self.team.led([loss, score])
        return loss, score

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


def make_trainer(problem: Problem, member: int = 0, team: Team = ALONE) -> Trainer:
    """A trainer with fresh weights; members of an ensemble differ in their random numbers."""
    data, settings = problem.data, problem.settings
    with seeded(settings.training.seed, member, 0):
        model = problem.unit.network(
            data.num_features, problem.task.width, data.num_channels, settings
        )
    return Trainer(problem, model, member, team)
