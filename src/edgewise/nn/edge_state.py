"""Edges that have features of their own, which each layer updates for the next."""

from dataclasses import dataclass, replace
from typing import Any

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, eq=False)
class EdgeState:
    """What a layer prepared from the edges, and the features that they have by now."""

    prepared: Any
    features: Float[Tensor, "edges width"]

    def updated(self, features: Float[Tensor, "edges width"]) -> "EdgeState":
        return replace(self, features=features)

    def along(self, prepared: Any) -> "EdgeState":
        return replace(self, prepared=prepared)
