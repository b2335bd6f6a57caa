"""How many neighbours are drawn in each hop of a network, from the setting ``neighbors``."""

from edgewise.core.errors import EdgewiseError
from edgewise.core.registries import LAYERS
from edgewise.core.settings import Settings
from edgewise.kernels.sampling import ALL


def fan_outs(settings: Settings) -> tuple[int, ...]:
    """A number for each hop, that of the last layer first; none where no neighbours are sampled.

    Raises:
        EdgewiseError: If the layer cannot sample, or if the numbers do not fit the network.
    """
    said, model = settings.training.neighbors, settings.model
    if not said:
        return ()
    if model.regime == "auto":
        raise EdgewiseError(
            "regime = auto tries networks of several depths on the whole graph; leave it out, or "
            "leave out neighbors"
        )
    try:
        numbers = [int(word) for word in said.split(",")]
    except ValueError:
        numbers = []
    if not numbers or any(number < 1 and number != ALL for number in numbers):
        raise EdgewiseError(
            f"neighbors = {said!r} is no list of fan-outs; give whole numbers above 0, or {ALL} "
            "for all neighbours, such as 15,10"
        )
    if len(numbers) not in (1, model.depth):
        raise EdgewiseError(
            f"neighbors = {said} has fan-outs for {len(numbers)} layers, but depth = "
            f"{model.depth}; give one for each layer, or one for all"
        )
    each = numbers if len(numbers) == model.depth else numbers * model.depth
    hops = LAYERS[model.layer].hops(model)
    return tuple(number for number in each for _ in range(hops))


def edge_fan_outs(settings: Settings) -> tuple[int, ...]:
    """The same where edges are drawn one by one, which the layer must keep apart.

    Raises:
        EdgewiseError: If it does not.
    """
    layer = settings.model.layer
    if not LAYERS[layer].has_edge_state:
        raise EdgewiseError(
            f"the layer {layer} merges parallel edges, which are sampled one by one; set layer = "
            "gated, or leave out neighbors"
        )
    return fan_outs(settings)


def refuse_undivided(settings: Settings) -> None:
    """Refuse several workers where every step takes the whole graph."""
    if not settings.training.neighbors:
        raise EdgewiseError(
            "a step of training takes the whole graph, so several workers have nothing to "
            "divide; sample neighbours with --neighbors, or leave --workers out"
        )
