"""Pooling of the nodes of each graph: maximum, mean, sum, or a mean weighted by attention."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numba import prange
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.kernels import backend


def pool(
    x: Float[Tensor, "nodes width"], graph: Int[Tensor, " nodes"], num_graphs: int, how: str
) -> Float[Tensor, "graphs width"]:
    """``how`` is ``"max"``, ``"mean"`` or ``"sum"``. A graph without nodes gives zeros."""
    if how == "max" and backend.compiled(x):
        return _MaxPool.apply(x, graph, num_graphs)
    return plain_pool(x, graph, num_graphs, how)


def plain_pool(
    x: Float[Tensor, "nodes width"], graph: Int[Tensor, " nodes"], num_graphs: int, how: str
) -> Float[Tensor, "graphs width"]:
    """The same in torch: the reference, and the path off the CPU."""
    empty = x.new_zeros(num_graphs, x.size(1))
    if how == "max":
        index = graph.long().unsqueeze(1).expand_as(x)
        return empty.scatter_reduce(0, index, x, "amax", include_self=False)
    total = empty.index_add(0, graph, x)
    return total if how == "sum" else mean_of(total, graph)


def mean_of(
    total: Float[Tensor, "graphs width"], graph: Int[Tensor, " nodes"]
) -> Float[Tensor, "graphs width"]:
    """The means, from the sums of the nodes of each graph."""
    count = torch.bincount(graph, minlength=len(total)).clamp(min=1)
    return total / count.to(total.dtype).unsqueeze(1)


def attention_pool(
    x: Float[Tensor, "nodes width"],
    score: Float[Tensor, "nodes 1"],
    graph: Int[Tensor, " nodes"],
    num_graphs: int,
) -> Float[Tensor, "graphs width"]:
    """The mean of the nodes of each graph, weighted by the softmax of their scores."""
    highest = pool(score.detach(), graph, num_graphs, "max")  # a shift, so that no exp overflows
    weight = (score - highest[graph]).exp()
    total = pool(weight, graph, num_graphs, "sum")
    return pool(weight / total[graph] * x, graph, num_graphs, "sum")


class _MaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, graph: Tensor, num_graphs: int) -> Tensor:
        x, graph = x.detach().contiguous(), graph.long()
        out = x.new_empty(num_graphs, x.size(1))
        tie_weight = torch.empty_like(out)
        with backend.running:
            _max_pool(x.numpy(), graph.numpy(), out.numpy(), tie_weight.numpy())
        ctx.save_for_backward(x, graph, out, tie_weight)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        x, graph, out, tie_weight = ctx.saved_tensors
        grad_x = torch.empty_like(x)
        with backend.running:
            _max_pool_backward(x.numpy(), graph.numpy(), out.numpy(),
                               (grads[0] * tie_weight).numpy(), grad_x.numpy())  # fmt: skip
        return grad_x, None, None


# Ties are common (atoms that a symmetry exchanges); as in torch, they share the gradient equally.
@backend.jit(parallel=True)
def _max_pool(x, graph, out, tie_weight):  # type: ignore[no-untyped-def]
    """The maxima, and one over the number of nodes that tie for each."""
    nodes, width = x.shape
    one = x.dtype.type(1)
    for block in prange((width + 63) // 64):
        columns = slice(block * 64, min(width, block * 64 + 64))
        out[:, columns], tie_weight[:, columns] = -np.inf, 0
        for i in range(nodes):
            values = x[i, columns]
            highest, ties = out[graph[i], columns], tie_weight[graph[i], columns]
            for f in range(len(values)):
                value, top = values[f], highest[f]
                is_larger = (value > top) | (value != value)
                tied = ties[f] + one if value == top else ties[f]
                ties[f] = one if is_larger else tied
                highest[f] = value if is_larger else top
        for g in range(len(out)):
            highest, ties = out[g, columns], tie_weight[g, columns]
            for f in range(len(ties)):
                if ties[f] > 0:
                    ties[f] = 1 / ties[f]
                else:
                    highest[f] = 0


@backend.jit(parallel=True)
def _max_pool_backward(x, graph, out, grad, grad_x):  # type: ignore[no-untyped-def]
    nodes, width = x.shape
    for i in prange(nodes):
        g = graph[i]
        for f in range(width):
            grad_x[i, f] = grad[g, f] if x[i, f] == out[g, f] else 0
