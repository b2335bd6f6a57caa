"""Compiled walks along gated edges: node by node, a register of channels at a time.

``nodes`` holds one row a node, four parts side by side: its share of the gates it receives
messages through, its share of the gates it sends through (``channels`` columns each), its message,
and its own term (``groups * channels`` columns each). Column ``f`` of a message goes through
channel ``f % channels``. Every node is written by one thread, so the result does not depend on
their number.
"""

import numpy as np
from numba import prange

from edgewise.kernels.backend import FAST_MATH, jit
from edgewise.kernels.lanes import broadcast, load, multiply, multiply_add, store, zeros
from edgewise.kernels.sigmoid import inverse, sigmoid

ONE, NONE = np.uint64(1), np.uint64(0)


@jit()
def first_of(block, channels, lanes):  # type: ignore[no-untyped-def]
    """Where a block of columns begins; the last one reaches back where it would stand out."""
    size = np.uint64(len(lanes))
    return min(block * size, channels - size)


@jit()
def blocks_of(channels, lanes):  # type: ignore[no-untyped-def]
    size = np.uint64(len(lanes))
    return (channels + size - ONE) // size


@jit(parallel=True, fastmath=FAST_MATH)
def gate_and_sum(  # type: ignore[no-untyped-def]
    start, edge, source, nodes, term, state, gate, scale, out, lanes
):
    """The gates, and the sum of messages through them, to which a node's own term is added.

    ``term``, ``state`` and ``scale`` may have no rows: there is nothing to add to the gates, their
    arguments are not kept, sums are not divided by the sum of the gates. ``out`` without columns
    leaves it at the gates.
    """
    channels = np.uint64(gate.shape[1])
    groups = np.uint64(out.shape[1]) // channels
    width, by_row = groups * channels, len(scale) > 0
    has_term, keep = len(term) > 0, len(state) > 0
    for node in prange(len(start) - 1):
        i = np.uint64(node)
        first, last = np.uint64(start[i]), np.uint64(start[i + ONE])
        zero = zeros(nodes, lanes)
        for block in range(NONE, blocks_of(channels, lanes)):
            f = first_of(block, channels, lanes)
            own, total = load(zero, nodes, i, f), zero
            for p in range(first, last):
                e, j = np.uint64(edge[p]), np.uint64(source[p])
                z = multiply_add(own, 1, load(zero, nodes, j, channels + f))
                if has_term:
                    z = multiply_add(z, 1, load(zero, term, e, f))
                if keep:
                    store(z, state, e, f)
                weight = sigmoid(z)
                store(weight, gate, e, f)
                total = multiply_add(total, 1, weight)
            factor = broadcast(zero, 1)
            if by_row:
                factor = inverse(total)
                store(factor, scale, i, f)
            for g in range(NONE, groups):
                column = channels + channels + g * channels + f
                total = zero
                for p in range(first, last):
                    e, j = np.uint64(edge[p]), np.uint64(source[p])
                    total = multiply_add(
                        total, load(zero, gate, e, f), load(zero, nodes, j, column)
                    )
                own_term = load(zero, nodes, i, column + width)
                store(multiply_add(own_term, factor, total), out, i, g * channels + f)


@jit(parallel=True, fastmath=FAST_MATH)
def gradient_by_target(  # type: ignore[no-untyped-def]
    start, edge, source, nodes, gate, scale, grad, grad_state, grad_term, grad_nodes, scaled, lanes
):
    """The gradient on every edge, and on what depends on the target alone.

    With rows in ``scale`` the sums were divided, and ``scaled`` becomes ``scale * grad``, which the
    walk by source reads.
    """
    channels = np.uint64(gate.shape[1])
    groups = np.uint64(grad.shape[1]) // channels
    width, from_state, by_row = groups * channels, len(grad_state) > 0, len(scale) > 0
    for node in prange(len(start) - 1):
        i = np.uint64(node)
        first, last = np.uint64(start[i]), np.uint64(start[i + ONE])
        zero = zeros(nodes, lanes)
        one = broadcast(zero, 1)
        for block in range(NONE, blocks_of(channels, lanes)):
            f = first_of(block, channels, lanes)
            mean = zero
            for p in range(first, last):
                e, j = np.uint64(edge[p]), np.uint64(source[p])
                dot = zero
                for g in range(NONE, groups):
                    column = g * channels + f
                    message = load(zero, nodes, j, channels + channels + column)
                    dot = multiply_add(dot, load(zero, grad, i, column), message)
                store(dot, grad_term, e, f)
                mean = multiply_add(mean, load(zero, gate, e, f), dot)
            factor, total = one, zero
            if by_row:
                factor = load(zero, scale, i, f)
                mean = multiply(factor, mean)
            else:
                mean = zero
            for p in range(first, last):
                e = np.uint64(edge[p])
                weight = load(zero, gate, e, f)
                slope = multiply(multiply(factor, weight), multiply_add(one, -1, weight))
                on_edge = multiply(slope, multiply_add(load(zero, grad_term, e, f), -1, mean))
                if from_state:
                    on_edge = multiply_add(on_edge, 1, load(zero, grad_state, e, f))
                store(on_edge, grad_term, e, f)
                total = multiply_add(total, 1, on_edge)
            store(total, grad_nodes, i, f)
            for g in range(NONE, groups):
                column = g * channels + f
                on_node = load(zero, grad, i, column)
                store(on_node, grad_nodes, i, channels + channels + width + column)
                if by_row:
                    store(multiply(factor, on_node), scaled, i, column)


@jit(parallel=True, fastmath=FAST_MATH)
def gradient_by_source(  # type: ignore[no-untyped-def]
    start, edge, target, gate, scaled, grad_term, grad_nodes, lanes
):
    """The gradient on what depends on the source alone; ``scaled`` is ``scale * grad``."""
    channels = np.uint64(gate.shape[1])
    groups = np.uint64(scaled.shape[1]) // channels
    for node in prange(len(start) - 1):
        j = np.uint64(node)
        first, last = np.uint64(start[j]), np.uint64(start[j + ONE])
        zero = zeros(gate, lanes)
        for block in range(NONE, blocks_of(channels, lanes)):
            f = first_of(block, channels, lanes)
            total = zero
            for p in range(first, last):
                total = multiply_add(total, 1, load(zero, grad_term, np.uint64(edge[p]), f))
            store(total, grad_nodes, j, channels + f)
            for g in range(NONE, groups):
                column, total = g * channels + f, zero
                for p in range(first, last):
                    e, i = np.uint64(edge[p]), np.uint64(target[p])
                    total = multiply_add(
                        total, load(zero, gate, e, f), load(zero, scaled, i, column)
                    )
                store(total, grad_nodes, j, channels + channels + column)


@jit(parallel=True, fastmath=FAST_MATH)
def weighted_sum(start, edge, far, gate, x, out, lanes):  # type: ignore[no-untyped-def]
    """``out[i] = sum of gate[e] * x[far end of e]`` over the edges of node ``i``."""
    channels = np.uint64(gate.shape[1])
    for node in prange(len(start) - 1):
        i = np.uint64(node)
        first, last = np.uint64(start[i]), np.uint64(start[i + ONE])
        zero = zeros(gate, lanes)
        for block in range(NONE, blocks_of(channels, lanes)):
            f = first_of(block, channels, lanes)
            for column in range(f, np.uint64(x.shape[1]), channels):
                total = zero
                for p in range(first, last):
                    e, j = np.uint64(edge[p]), np.uint64(far[p])
                    total = multiply_add(total, load(zero, gate, e, f), load(zero, x, j, column))
                store(total, out, i, column)


@jit(parallel=True, fastmath=FAST_MATH)
def gradient_of_weights(start, edge, far, grad, x, grad_gate, lanes):  # type: ignore[no-untyped-def]
    """``grad_gate[e] = sum over groups of grad[near end of e] * x[far end of e]``."""
    channels = np.uint64(grad_gate.shape[1])
    for node in prange(len(start) - 1):
        i = np.uint64(node)
        zero = zeros(grad, lanes)
        for p in range(np.uint64(start[i]), np.uint64(start[i + ONE])):
            e, j = np.uint64(edge[p]), np.uint64(far[p])
            for block in range(NONE, blocks_of(channels, lanes)):
                f = first_of(block, channels, lanes)
                dot = zero
                for column in range(f, np.uint64(x.shape[1]), channels):
                    dot = multiply_add(dot, load(zero, grad, i, column), load(zero, x, j, column))
                store(dot, grad_gate, e, f)


@jit(parallel=True, fastmath=FAST_MATH)
def edge_sum(start, edge, value, out, lanes):  # type: ignore[no-untyped-def]
    """``out[i] = sum of value[e]`` over the edges of node ``i``."""
    channels = np.uint64(value.shape[1])
    for node in prange(len(start) - 1):
        i = np.uint64(node)
        zero = zeros(value, lanes)
        for block in range(NONE, blocks_of(channels, lanes)):
            f = first_of(block, channels, lanes)
            total = zero
            for p in range(np.uint64(start[i]), np.uint64(start[i + ONE])):
                total = multiply_add(total, 1, load(zero, value, np.uint64(edge[p]), f))
            store(total, out, i, f)
