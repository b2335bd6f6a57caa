"""Adam in torch's fused kernels, with as little around them as training needs.

The first call of ``torch.optim.Adam`` imports torch's compiler, which takes longer than training on
a few hundred molecules for some epochs.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

BETAS, EPSILON = (0.9, 0.999), 1e-8  # as in torch.optim


def clip_gradients(parameters: Sequence[Tensor], most: float) -> None:
    """Shrink the gradient, where its norm is larger: the same bits as torch, in fewer calls."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    if gradients:
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        factor = (most / (norm + 1e-6)).clamp(max=1.0)
        torch._foreach_mul_(gradients, factor)  # always: asking first would wait for the device


class Adam:
    """Adam, or AdamW with ``decoupled`` weight decay: the same bits as ``torch.optim``.

    Args:
        groups: Parameters with a ``"weight_decay"`` for all ``"params"`` of a group.
        learning_rate: The ``"lr"`` of every group, which may be changed between steps.
        decoupled: Whether weight decay shrinks the weights, and is no part of the gradient.
    """

    def __init__(
        self, groups: Sequence[dict[str, Any]], learning_rate: float, *, decoupled: bool = False
    ) -> None:
        self.param_groups = [
            {**group, "params": list(group["params"]), "lr": learning_rate} for group in groups
        ]
        self.decoupled = decoupled
        # Moments and number of steps by the position of a parameter, as torch.optim counts and
        # names them; one without a gradient has none.
        self.state: dict[int, dict[str, Tensor]] = {}

    def zero_grad(self) -> None:
        for parameter in self._parameters():
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        first, update = 0, torch._fused_adamw_ if self.decoupled else torch._fused_adam_
        for group in self.param_groups:
            numbered = enumerate(group["params"], first)
            first += len(group["params"])
            found = [(number, p) for number, p in numbered if p.grad is not None]
            if not found:
                continue
            slots = [self.state.get(number) or self._start(number, p) for number, p in found]
            steps = [slot["step"] for slot in slots]
            torch._foreach_add_(steps, 1)
            update(
                [p for _, p in found],
                [p.grad for _, p in found],
                [slot["exp_avg"] for slot in slots],
                [slot["exp_avg_sq"] for slot in slots],
                [],
                steps,
                amsgrad=False,
                beta1=BETAS[0],
                beta2=BETAS[1],
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=EPSILON,
                maximize=False,
            )

    def restore(self, state: dict[int, dict[str, Tensor]]) -> None:
        """Continue with the state that an optimiser had."""
        parameters = self._parameters()
        self.state = {
            number: {name: slot.to(parameters[number].device, copy=True)
                     for name, slot in slots.items()}
            for number, slots in state.items()
        }  # fmt: skip

    def _parameters(self) -> list[Tensor]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def _start(self, number: int, parameter: Tensor) -> dict[str, Tensor]:
        self.state[number] = {
            "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
        return self.state[number]
