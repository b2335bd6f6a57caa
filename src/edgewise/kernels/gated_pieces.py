"""The pieces that gated messages consist of, compiled and in plain torch, with their gradients."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.kernels import backend, gated_walks
from edgewise.kernels.incidence import Incidence, Side
from edgewise.kernels.sigmoid import LOWEST


def gates(
    incidence: Incidence, target: Tensor, source: Tensor, term: Tensor | None
) -> tuple[Float[Tensor, "edges channels"], Float[Tensor, "edges channels"]]:
    """The gates of all edges, and the states they are the sigmoid of."""
    if backend.compiled(target, source, *given(term)):
        gate, state = _Gates.apply(incidence, torch.cat([target, source], dim=1), term)
        return gate, state
    state = target[incidence.target] + source[incidence.source]
    state = state if term is None else state + term
    # Held at the lowest value, yet with the gradient that the sigmoid has there.
    held = state + (state.clamp(min=LOWEST) - state).detach()
    return held.sigmoid(), state


def weighted_sum(
    incidence: Incidence, gate: Tensor, x: Float[Tensor, "nodes width"], *, by: str = "target"
) -> Float[Tensor, "nodes width"]:
    """``out[i] = sum over edges j -> i of gate * x[j]``; with ``by="source"``, of edges i -> j."""
    if backend.compiled(gate, x):
        return _WeightedSum.apply(incidence, gate, x, by)
    near, far = incidence.target, incidence.source
    near, far = (near, far) if by == "target" else (far, near)
    groups = x.size(1) // gate.size(1) if gate.size(1) else 0
    message = gate.unsqueeze(1) * x[far].unflatten(1, (groups, gate.size(1)))
    return torch.zeros_like(x).index_add(0, near, message.flatten(1))


def edge_sum(incidence: Incidence, value: Tensor, *, by: str = "target") -> Tensor:
    """``out[i] = sum of value`` over the edges that enter (or leave) node ``i``."""
    if backend.compiled(value):
        return _EdgeSum.apply(incidence, value, by)
    near = incidence.target if by == "target" else incidence.source
    return value.new_zeros(incidence.num_nodes, value.size(1)).index_add(0, near, value)


class GatedSum(torch.autograd.Function):
    """Gate, sum and divide in one pass; backward in one pass a direction."""

    @staticmethod
    def forward(
        ctx: Any,
        incidence: Incidence,
        nodes: Tensor,
        term: Tensor | None,
        channels: int,
        by_row: bool,
        keep_state: bool,
    ) -> tuple[Tensor, Tensor]:
        nodes, edges = nodes.detach().contiguous(), incidence.num_edges
        gate = nodes.new_empty(edges, channels)
        state = nodes.new_empty(edges if keep_state else 0, channels)
        scale = nodes.new_empty(len(nodes) if by_row else 0, channels)
        out = nodes.new_empty(len(nodes), nodes.size(1) // 2 - channels)
        with backend.running:
            gated_walks.gate_and_sum(*_side(incidence.by_target), nodes.numpy(),
                                     _rows(term, gate), state.numpy(), gate.numpy(),
                                     scale.numpy(), out.numpy(), lanes_of(gate))  # fmt: skip
        ctx.incidence = incidence
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(nodes, gate, scale)
        if not keep_state:
            ctx.mark_non_differentiable(state)
        return out, state

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        nodes, gate, scale = ctx.saved_tensors
        incidence, (grad, grad_state), channels = ctx.incidence, grads, gate.size(1)
        width = nodes.size(1) // 2 - channels
        grad = nodes.new_zeros(len(nodes), width) if grad is None else grad.contiguous()
        scaled = torch.empty_like(grad) if len(scale) else grad
        grad_nodes, grad_term = torch.empty_like(nodes), torch.empty_like(gate)
        with backend.running:
            gated_walks.gradient_by_target(*_side(incidence.by_target), nodes.numpy(),
                                           gate.numpy(), scale.numpy(), grad.numpy(),
                                           _rows(grad_state, gate), grad_term.numpy(),
                                           grad_nodes.numpy(), scaled.numpy(),
                                           lanes_of(gate))  # fmt: skip
            gated_walks.gradient_by_source(*_side(incidence.by_source), gate.numpy(),
                                           scaled.numpy(), grad_term.numpy(),
                                           grad_nodes.numpy(), lanes_of(gate))  # fmt: skip
        return None, grad_nodes, grad_term if ctx.needs_input_grad[2] else None, None, None, None


class _Gates(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, incidence: Incidence, nodes: Tensor, term: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        channels = nodes.size(1) // 2
        gate = nodes.new_empty(incidence.num_edges, channels)
        state, nothing = torch.empty_like(gate), gate.new_empty(0, channels)
        out = gate.new_empty(len(nodes), 0)
        with backend.running:
            gated_walks.gate_and_sum(*_side(incidence.by_target),
                                     nodes.detach().contiguous().numpy(), _rows(term, gate),
                                     state.numpy(), gate.numpy(), nothing.numpy(), out.numpy(),
                                     lanes_of(gate))  # fmt: skip
        ctx.incidence = incidence
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(gate)
        return gate, state

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        (gate,) = ctx.saved_tensors
        on_gate, on_state = grads
        on_edge = torch.zeros_like(gate) if on_gate is None else on_gate * gate * (1 - gate)
        on_edge = on_edge if on_state is None else on_edge + on_state
        ends = [_summed(ctx.incidence, on_edge, by) for by in ("target", "source")]
        return None, torch.cat(ends, dim=1), on_edge if ctx.needs_input_grad[2] else None


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, incidence: Incidence, gate: Tensor, x: Tensor, by: str) -> Tensor:
        gate, x = gate.detach().contiguous(), x.detach().contiguous()
        ctx.incidence, ctx.by = incidence, by
        ctx.save_for_backward(gate, x)
        return _multiplied(incidence, gate, x, by)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        gate, x = ctx.saved_tensors
        grad, incidence = grads[0].contiguous(), ctx.incidence
        grad_gate = torch.empty_like(gate)
        with backend.running:
            gated_walks.gradient_of_weights(*_side(_near(incidence, ctx.by)), grad.numpy(),
                                            x.numpy(), grad_gate.numpy(),
                                            lanes_of(gate))  # fmt: skip
        other = "source" if ctx.by == "target" else "target"
        return None, grad_gate, _multiplied(incidence, gate, grad, other), None


class _EdgeSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, incidence: Incidence, value: Tensor, by: str) -> Tensor:
        ctx.end = incidence.target if by == "target" else incidence.source
        return _summed(incidence, value, by)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return None, grads[0].index_select(0, ctx.end), None


def _multiplied(incidence: Incidence, gate: Tensor, x: Tensor, by: str) -> Tensor:
    out = torch.empty_like(x)
    with backend.running:
        gated_walks.weighted_sum(*_side(_near(incidence, by)), gate.numpy(), x.numpy(),
                                 out.numpy(), lanes_of(gate))  # fmt: skip
    return out


def _summed(incidence: Incidence, value: Tensor, by: str) -> Tensor:
    value = value.detach().contiguous()
    out = value.new_empty(incidence.num_nodes, value.size(1))
    start, edge, _ = _side(_near(incidence, by))
    with backend.running:
        gated_walks.edge_sum(start, edge, value.numpy(), out.numpy(), lanes_of(value))
    return out


def _near(incidence: Incidence, by: str) -> Side:
    return incidence.by_target if by == "target" else incidence.by_source


def _side(side: Side) -> tuple[Any, ...]:
    return tuple(backend.unsigned(tensor) for tensor in side)


def _rows(tensor: Tensor | None, like: Tensor) -> Any:
    """As an array; one without rows where there is nothing."""
    return (like[:0] if tensor is None else tensor.detach().contiguous()).numpy()


def lanes_of(like: Tensor) -> tuple[int, ...]:
    """As many numbers as are taken at a time: 128 bytes of a row, or less where it is short.

    Fewer lengths in double precision, each of which is compiled: it is for comparisons.
    """
    sizes = (16, 1) if like.dtype == torch.float64 else (32, 8, 1)
    return (0,) * next(size for size in sizes if size <= like.size(1))


def given(term: Tensor | None) -> tuple[Tensor, ...]:
    """What there is of it, for :func:`backend.compiled`."""
    return () if term is None else (term,)
