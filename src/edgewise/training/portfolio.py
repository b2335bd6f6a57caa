"""Which regime of networks suits the data: a small fixed portfolio, judged on validation rows.

Successive halving: all regimes train for some epochs, the better half goes on, and so forth; the
winner is then trained from its start, so that a run is the same whether its regime was chosen or
named. Regimes that are to be expected to take more memory than there is are not tried.
"""

import math
from collections.abc import Callable

from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import PORTFOLIO
from edgewise.core.team import ALONE, Team, WorkerLost
from edgewise.kernels.memory import memory_limit
from edgewise.training.expected_cost import GIB, expected_cost
from edgewise.training.fitting import Fitting
from edgewise.training.trainer import make_trainer
from edgewise.units.base import Problem, Show, Tell

RUNGS = (40, 240)  # epochs after which the worse half of the regimes is rejected
WINDOW = 10  # epochs in a row whose mean score counts, for a single one may be lucky


def decided(
    problem: Problem,
    *,
    tell: Tell = lambda _: None,
    warn: Tell | None = None,
    progress: Show | None = None,
    stop: Callable[[], bool] = lambda: False,
    team: Team = ALONE,
) -> Problem:
    """The problem in the regime that does best on its validation rows, where that is left open.

    Args:
        problem: Whose settings may say ``regime = "auto"``.
        tell: Called with the choice.
        warn: Called with what memory rules out; without it ``tell`` is.
        progress: Called with how far it is.
        stop: Asked before each epoch; if so, nothing is chosen.
        team: The processes that train together.

    Raises:
        EdgewiseError: If it was stopped, or if no regime can be trained.
    """
    every = affordable_regimes(problem, warn or tell, team)
    if len(every) == 1:
        return next(iter(every.values()))
    if not len(problem.split.validation):
        name = next(iter(every))
        tell(f"regime {name}: there are no validation rows to choose by")
        return every[name]
    fittings = {name: Fitting(make_trainer(one, team=team)) for name, one in every.items()}
    for fitting in fittings.values():
        fitting.align()
    left, found = list(fittings), {}
    for rung, epochs in enumerate(RUNGS):
        if len(left) == 1:
            break
        for number, name in enumerate(left):
            title = f"trying the regime {name}, {number + 1} of {len(left)}"
            if progress is not None:
                progress(title, rung * len(every) + number, len(RUNGS) * len(every))
            found[name] = _validated(fittings[name], epochs, stop)
        # Stable, so that of equal ones the simpler comes first.
        left = sorted(left, key=lambda name: found[name])[: math.ceil(len(left) / 2)]
        fittings = {name: fittings[name] for name in left}  # the others' memory is free
    best = left[0]
    if math.isinf(found[best]):
        raise EdgewiseError(
            "training diverged in every regime; set regime = given and lower the learning_rate"
        )
    shown = ", ".join(f"{name} {abs(value):.4f}" for name, value in found.items())
    tell(f"regime {best}, chosen by validation {problem.task.headline}: {shown}")
    return every[best]


def regimes_of(problem: Problem) -> dict[str, Problem]:
    """The problem in each regime that it may be trained in: in one, where that is decided."""
    named, regimes = problem.settings.model.regime, PORTFOLIO.get(problem.unit.name, {})
    if named != "auto" or not regimes:
        return {named: problem}
    settings = {name: problem.settings.changed(**own, regime=name) for name, own in regimes.items()}
    return {name: problem.unit.changed(problem, one) for name, one in settings.items()}


def affordable_regimes(
    problem: Problem, tell: Tell = lambda _: None, team: Team = ALONE
) -> dict[str, Problem]:
    """The regimes that a whole graph leaves memory for; at least the one that takes the least.

    Args:
        problem: Whose settings may say ``regime = "auto"``.
        tell: Called with what is left out, and with what may not fit although it is tried.
        team: The processes that train together.
    """
    every = regimes_of(problem)
    if not problem.data.whole_graph or problem.data.device.type != "cpu":
        return every
    costs = {name: expected_cost(one) for name, one in every.items()}
    # Without what the process holds besides, which is no matter of the data.
    needed = {name: cost.step_bytes for name, cost in costs.items() if cost is not None}
    too_large = [name for name, memory in needed.items() if memory > memory_limit()]
    if len(too_large) == len(every):
        least = min(needed, key=lambda name: needed[name])
        too_large.remove(least)
        tell(f"notice: training {_too_large(needed[least])}")
    too_large = team.led(too_large)
    for name in too_large:
        tell(f"regime {name} is not tried: it {_too_large(needed[name])}")
    return {name: one for name, one in every.items() if name not in too_large}


def _too_large(needed: float) -> str:
    return (
        f"is to be expected to take about {needed / GIB:.1f} GiB of memory beside the data, which "
        f"is more than {memory_limit() / GIB:.1f} (half of this machine's, or EDGEWISE_MEMORY_GB); "
        "--neighbors 15,10 trains on sampled neighbours and takes little"
    )


def _validated(fitting: Fitting, epochs: int, stop: Callable[[], bool]) -> float:
    """The validation score of the best epochs so far, lower is better; infinite if it diverged."""
    while not fitting.done and len(fitting.history) < epochs:
        if stop():
            raise EdgewiseError(
                "stopped before a regime was chosen, so there is no model; continue with edgewise "
                "train --resume and the folder of the run"
            )
        try:
            fitting.step()
        except WorkerLost:
            raise
        except EdgewiseError:
            return math.inf
    # By the same measure for all, whatever each goes by in early stopping.
    scores = [e.validation_score for e in fitting.history if not math.isnan(e.validation_score)]
    if not scores:
        scores = [epoch.validation_loss for epoch in fitting.history]
    elif not fitting.trainer.task.lower_is_better:
        scores = [-score for score in scores]
    width = min(WINDOW, len(scores))
    # Summed up exactly, for equal means in another order are equal.
    return min(math.fsum(scores[k : k + width]) / width for k in range(len(scores) - width + 1))
