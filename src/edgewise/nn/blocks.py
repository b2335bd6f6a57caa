"""A block of a network: layer, root weight, norm, activation, dropout, residual."""

from collections.abc import Callable
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import elu, gelu, relu

from edgewise.graphs.features import Features
from edgewise.kernels.activation import drop, elu_and_drop
from edgewise.kernels.dropout import draw_key
from edgewise.nn.batch_norm import BatchNorm
from edgewise.nn.edge_state import EdgeState
from edgewise.nn.layers.base import mapped
from edgewise.nn.layers.layer import Layer
from edgewise.nn.linear import Linear

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"elu": elu, "relu": relu, "gelu": gelu}


NORMS: dict[str, Callable[[int], nn.Module | None]] = {
    "none": lambda width: None,
    "batch": BatchNorm,
    "layer": nn.LayerNorm,
}


class Block(nn.Module):
    """One step of a network.

    Args:
        layer: What mixes nodes along edges.
        norm: One of :data:`NORMS`.
        activation: One of :data:`ACTIVATIONS`; empty for none.
        dropout: Probability that a feature on the way out is dropped in training.
        residual: Add what came in to what goes out, where both are equally wide.
        feed_forward: Width of two linear layers behind it, times its own; 0 for none.
        last: Whether nothing reads the edges that the layer hands on.
        root_width: Width of a node on the way in, of which a linear map is added to what the layer
            gathers; 0 for none.
    """

    def __init__(
        self,
        layer: Layer,
        *,
        norm: str = "none",
        activation: str = "elu",
        dropout: float = 0.0,
        residual: bool = False,
        feed_forward: int = 0,
        last: bool = False,
        root_width: int = 0,
    ) -> None:
        super().__init__()
        self.layer, self.activation, self.dropout = layer, activation, dropout
        self.residual = residual
        width = layer.out_width
        self.root = Linear(root_width, width, bias=False) if root_width else None
        self.norm = NORMS[norm](width)
        updates_edges = layer.has_edge_state and not last
        self.edge_norm = NORMS[norm](layer.edge_width) if updates_edges else None
        self.feed_forward: nn.Module | None = None
        if feed_forward:
            before = NORMS[norm](width)
            self.feed_forward = nn.Sequential(
                *([] if before is None else [before]),
                Linear(width, feed_forward * width),
                nn.ReLU(),
                nn.Dropout(dropout),
                Linear(feed_forward * width, width),
                nn.Dropout(dropout),
            )

    def forward(self, x: Features, edges: Any) -> tuple[Float[Tensor, "rows out"], Any]:
        """New node features, and the edges that the layer hands on, if it does.

        Of sampled neighbours, features for the first nodes alone.
        """
        out, handed_on = self.layer.advance(x, edges)
        out = self.finish(out, x)
        return out, self._updated(edges, handed_on)

    def finish(self, out: Float[Tensor, "rows out"], x: Features) -> Float[Tensor, "rows out"]:
        """All that follows the layer: a node by itself.

        Args:
            out: What the layer gave.
            x: What went in, of these rows first.
        """
        bias = self.layer.deferred_bias
        if self.root is not None:
            out = out + mapped(first_rows(x, out), self.root.weight.t())
        p = self.dropout if self.training else 0.0
        if self.norm is None and self.activation == "elu":
            # One pass for all three: the way of the paper's networks.
            out = elu_and_drop(out, bias, p, draw_key() if p > 0 else 0)
        else:
            out = out if bias is None else out + bias
            out = out if self.norm is None else self.norm(out)
            out = ACTIVATIONS[self.activation](out) if self.activation else out
            out = drop(out, p, draw_key()) if p > 0 else out
        if self.residual and isinstance(x, Tensor) and x.size(1) == out.size(1):
            out = out + first_rows(x, out)
        if self.feed_forward is not None:
            out = out + self.feed_forward(out)
        return out

    @property
    def reads_input(self) -> bool:
        """Whether :meth:`finish` needs what went in."""
        return self.residual or self.root is not None

    def hand_on(self, projected: Tensor, edges: Any) -> Any:
        """The edges that go into the next block, for nodes with all their neighbours."""
        return self._updated(edges, self.layer.hand_on(projected, edges))

    def _updated(self, edges: Any, handed_on: Any) -> Any:
        if not isinstance(handed_on, EdgeState):
            return handed_on
        return handed_on.updated(self._new_state(edges.features, handed_on.features))

    def _new_state(self, before: Tensor, state: Tensor) -> Tensor:
        state = state if self.edge_norm is None else self.edge_norm(state)
        state = ACTIVATIONS[self.activation](state) if self.activation else state
        if self.residual and before.size(1) == state.size(1):
            return first_rows(before, state) + state
        return state


def first_rows(before: Any, after: Tensor) -> Any:
    """As many rows as came out: all, unless neighbours are sampled."""
    return before if len(before) == len(after) else before[: len(after)]
