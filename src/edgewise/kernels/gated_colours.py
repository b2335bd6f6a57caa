"""Gated messages between colours of nodes: as between nodes, each colour once.

Notation of :mod:`edgewise.kernels.gated_walks`. A node's colour on the way in numbers the rows of
``nodes``, that on the way out the rows of ``out``; gates and states belong to colours of edges.
"""

from typing import Any

import numpy as np
import torch
from numba import prange
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.kernels import backend, gated_walks
from edgewise.kernels.backend import FAST_MATH, jit
from edgewise.kernels.colours import Groups, Level
from edgewise.kernels.gated_pieces import lanes_of
from edgewise.kernels.gated_walks import NONE, ONE, blocks_of, first_of
from edgewise.kernels.lanes import broadcast, load, multiply, multiply_add, store, zeros
from edgewise.kernels.sigmoid import sigmoid


class GatedColours(torch.autograd.Function):
    """The own term of every colour plus its sum of gated messages, and the states of the edges."""

    @staticmethod
    def forward(
        ctx: Any, level: Level, nodes: Tensor, term: Tensor | None, channels: int
    ) -> tuple[Tensor, Tensor]:
        nodes = nodes.detach().contiguous()
        gate = nodes.new_empty(len(level.target), channels)
        state = torch.empty_like(gate)
        out = nodes.new_empty(len(level.parent), nodes.size(1) // 2 - channels)
        on_edges = (nodes if term is None else term.detach().contiguous()).numpy()
        lanes = lanes_of(gate)
        with backend.running:
            fill_gates(level.target, level.source, level.edge_parent, nodes.numpy(), on_edges,
                   term is not None, state.numpy(), gate.numpy(), lanes)  # fmt: skip
            fill_sums(*_both(level.entering), level.parent, level.source, nodes.numpy(),
                  gate.numpy(), out.numpy(), lanes)  # fmt: skip
        ctx.level = level
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(nodes, gate)
        return out, state

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        nodes, gate = ctx.saved_tensors
        level, (grad, grad_state), lanes = ctx.level, grads, lanes_of(gate)
        width = nodes.size(1) // 2 - gate.size(1)
        grad = nodes.new_zeros(len(level.parent), width) if grad is None else grad.contiguous()
        of_state = (grad if grad_state is None else grad_state.contiguous()).numpy()
        grad_gate, received = torch.empty_like(gate), nodes.new_empty(len(gate), width)
        grad_nodes = torch.empty_like(nodes)
        with backend.running:
            gradient_on_edges(*_both(level.receivers), level.source, nodes.numpy(), gate.numpy(),
                               grad.numpy(), of_state, grad_state is not None, grad_gate.numpy(),
                               received.numpy(), lanes)  # fmt: skip
            gradient_on_nodes(*_both(level.by_target), *_both(level.by_source),
                               *_both(level.children), gate.numpy(), received.numpy(),
                               grad.numpy(), grad_gate.numpy(), grad_nodes.numpy(),
                               lanes)  # fmt: skip
        grad_term = summed_rows(level.edge_children, grad_gate) if ctx.needs_input_grad[2] else None
        return None, grad_nodes, grad_term, None


def summed_rows(groups: Groups, rows: Tensor) -> Tensor:
    """The sum of the rows of each group."""
    out = rows.new_empty(len(groups.start) - 1, rows.size(1))
    with backend.running:
        gated_walks.edge_sum(*_both(groups), rows.numpy(), out.numpy(), lanes_of(rows))
    return out


def _both(groups: Groups) -> tuple[Any, Any]:
    return groups.start, groups.member


@jit(parallel=True, fastmath=FAST_MATH)
def fill_gates(target, source, parent, nodes, term, has_term, state, gate, lanes):  # type: ignore[no-untyped-def]
    channels = np.uint64(gate.shape[1])
    for edge in prange(len(target)):
        q = np.uint64(edge)
        i, j, before = np.uint64(target[q]), np.uint64(source[q]), np.uint64(parent[q])
        zero = zeros(nodes, lanes)
        for block in range(NONE, blocks_of(channels, lanes)):
            f = first_of(block, channels, lanes)
            z = multiply_add(load(zero, nodes, i, f), 1, load(zero, nodes, j, channels + f))
            if has_term:
                z = multiply_add(z, 1, load(zero, term, before, f))
            store(z, state, q, f)
            store(sigmoid(z), gate, q, f)


@jit(parallel=True, fastmath=FAST_MATH)
def fill_sums(start, entering, parent, source, nodes, gate, out, lanes):  # type: ignore[no-untyped-def]
    channels, width = np.uint64(gate.shape[1]), np.uint64(out.shape[1])
    for colour in prange(len(parent)):
        c = np.uint64(colour)
        own, first, last = np.uint64(parent[c]), np.uint64(start[c]), np.uint64(start[c + ONE])
        zero = zeros(nodes, lanes)
        for block in range(NONE, blocks_of(channels, lanes)):
            f = first_of(block, channels, lanes)
            for column in range(f, width, channels):
                message = channels + channels + column
                total = load(zero, nodes, own, message + width)
                for p in range(first, last):
                    q = np.uint64(entering[p])
                    j = np.uint64(source[q])
                    total = multiply_add(
                        total, load(zero, gate, q, f), load(zero, nodes, j, message)
                    )
                store(total, out, c, column)


@jit(parallel=True, fastmath=FAST_MATH)
def gradient_on_edges(  # type: ignore[no-untyped-def]
    start, receiver, source, nodes, gate, grad, grad_state, has_state, grad_gate, received, lanes
):
    """``received``: the sum of the gradients on all that an edge enters."""
    channels, width = np.uint64(gate.shape[1]), np.uint64(grad.shape[1])
    for edge in prange(len(source)):
        q = np.uint64(edge)
        j, first, last = np.uint64(source[q]), np.uint64(start[q]), np.uint64(start[q + ONE])
        zero = zeros(nodes, lanes)
        for block in range(NONE, blocks_of(channels, lanes)):
            f = first_of(block, channels, lanes)
            dot = zero
            for column in range(f, width, channels):
                total = zero
                for p in range(first, last):
                    total = multiply_add(total, 1, load(zero, grad, np.uint64(receiver[p]), column))
                store(total, received, q, column)
                dot = multiply_add(dot, total, load(zero, nodes, j, channels + channels + column))
            weight = load(zero, gate, q, f)
            slope = multiply(weight, multiply_add(broadcast(zero, 1), -1, weight))
            dot = multiply(slope, dot)
            if has_state:
                dot = multiply_add(dot, 1, load(zero, grad_state, q, f))
            store(dot, grad_gate, q, f)


@jit(parallel=True, fastmath=FAST_MATH)
def gradient_on_nodes(  # type: ignore[no-untyped-def]
    target_start, entering, source_start, leaving, child_start, child,
    gate, received, grad, grad_gate, grad_nodes, lanes
):  # fmt: skip
    channels, width = np.uint64(gate.shape[1]), np.uint64(grad.shape[1])
    for colour in prange(len(child_start) - 1):
        c = np.uint64(colour)
        zero = zeros(grad, lanes)
        for block in range(NONE, blocks_of(channels, lanes)):
            f = first_of(block, channels, lanes)
            total = zero
            for p in range(np.uint64(target_start[c]), np.uint64(target_start[c + ONE])):
                total = multiply_add(total, 1, load(zero, grad_gate, np.uint64(entering[p]), f))
            store(total, grad_nodes, c, f)
            first, last = np.uint64(source_start[c]), np.uint64(source_start[c + ONE])
            total = zero
            for p in range(first, last):
                total = multiply_add(total, 1, load(zero, grad_gate, np.uint64(leaving[p]), f))
            store(total, grad_nodes, c, channels + f)
            for column in range(f, width, channels):
                total = zero
                for p in range(first, last):
                    q = np.uint64(leaving[p])
                    total = multiply_add(
                        total, load(zero, gate, q, f), load(zero, received, q, column)
                    )
                store(total, grad_nodes, c, channels + channels + column)
                total = zero
                for p in range(np.uint64(child_start[c]), np.uint64(child_start[c + ONE])):
                    total = multiply_add(total, 1, load(zero, grad, np.uint64(child[p]), column))
                store(total, grad_nodes, c, channels + channels + width + column)
