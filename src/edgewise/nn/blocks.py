"""A block of a network: layer, norm, activation, dropout, residual."""

from collections.abc import Callable
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import elu, gelu, relu

from edgewise.graphs.features import Features
from edgewise.kernels.activation import drop, elu_and_drop
from edgewise.kernels.dropout import draw_key
from edgewise.nn.layers.layer import Layer

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"elu": elu, "relu": relu, "gelu": gelu}
NORMS: dict[str, Callable[[int], nn.Module | None]] = {
    "none": lambda width: None,
    "batch": nn.BatchNorm1d,
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
    """

    def __init__(
        self,
        layer: Layer,
        *,
        norm: str = "none",
        activation: str = "elu",
        dropout: float = 0.0,
        residual: bool = False,
    ) -> None:
        super().__init__()
        self.layer, self.activation, self.dropout = layer, activation, dropout
        self.residual = residual
        self.norm = NORMS[norm](layer.out_width)

    def forward(self, x: Features, edges: Any) -> tuple[Float[Tensor, "nodes out"], Any]:
        """New node features, and the edges that the layer hands on, if it does."""
        out, handed_on = self.layer.advance(x, edges)
        bias = self.layer.deferred_bias
        p = self.dropout if self.training else 0.0
        if self.norm is None and self.activation == "elu":
            # One pass for all three: the way of the paper's networks.
            out = elu_and_drop(out, bias, p, draw_key() if p > 0 else 0)
        else:
            out = out if bias is None else out + bias
            out = out if self.norm is None else self.norm(out)
            out = ACTIVATIONS[self.activation](out) if self.activation else out
            out = drop(out, p, draw_key()) if p > 0 else out
        if self.residual and isinstance(x, Tensor) and x.shape == out.shape:
            out = out + x
        return out, handed_on
