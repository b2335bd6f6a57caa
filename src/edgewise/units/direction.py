"""What the direction of edges becomes, decided once by looking at the training data."""

from edgewise.core.errors import EdgewiseError
from edgewise.core.settings import Settings


def decide_direction(
    settings: Settings, *, symmetric: bool, edges: int
) -> tuple[Settings, list[str]]:
    """The settings with the decision in them, and sentences on it.

    Args:
        settings: As the user left them.
        symmetric: Whether every edge has an equal reverse edge.
        edges: How many there are.
    """
    model = settings.model
    notes = []
    if model.directed and edges and symmetric:
        notes.append(
            "every edge has a reverse edge with the same values, so there is no direction to "
            "learn from; --no-directed makes one channel of each column, in place of three"
        )
    if model.directed and model.reciprocal != "auto":
        raise EdgewiseError(
            f"reciprocal = {model.reciprocal} joins the two directions between two nodes, which "
            "directed = true keeps apart; set directed = false, or leave it out"
        )
    if not model.directed and model.reciprocal == "auto":
        join = "max" if symmetric else "sum"
        settings = settings.changed(reciprocal=join)
        why = (
            "every edge has an equal reverse edge, so a pair of nodes weighs what one of them says"
            if symmetric
            else "edges go one way, so the two directions between two nodes are added up"
        )
        notes.append(f"without direction: {why} (--reciprocal {join})")
    return settings, notes
