"""The nodes of each graph to one row: their largest, mean or summed values."""

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
        return _LargestOfGraph.apply(x, graph, num_graphs)
    return plain_pool(x, graph, num_graphs, how)


def plain_pool(
    x: Float[Tensor, "nodes width"], graph: Int[Tensor, " nodes"], num_graphs: int, how: str
) -> Float[Tensor, "graphs width"]:
    """The same in torch: the reference, and the path off the CPU."""
    empty = x.new_zeros(num_graphs, x.size(1))
    if how == "sum":
        return empty.index_add(0, graph, x)
    reduction = {"max": "amax", "mean": "mean"}[how]
    index = graph.long().unsqueeze(1).expand_as(x)
    return empty.scatter_reduce(0, index, x, reduction, include_self=False)


class _LargestOfGraph(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, graph: Tensor, num_graphs: int) -> Tensor:
        x, graph = x.detach().contiguous(), graph.long()
        out = x.new_empty(num_graphs, x.size(1))
        share = torch.empty_like(out)
        with backend.running:
            _largest(x.numpy(), graph.numpy(), out.numpy(), share.numpy())
        ctx.save_for_backward(x, graph, out, share)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        x, graph, out, share = ctx.saved_tensors
        grad_x = torch.empty_like(x)
        with backend.running:
            _largest_backward(x.numpy(), graph.numpy(), out.numpy(), (grads[0] * share).numpy(),
                              grad_x.numpy())  # fmt: skip
        return grad_x, None, None


# Atoms that a symmetry exchanges are equally large; like torch, each gets its share of the
# gradient.
@backend.jit(parallel=True)
def _largest(x, graph, out, share):  # type: ignore[no-untyped-def]
    """The largest values, and one over the number of nodes that have them."""
    nodes, width = x.shape
    one = x.dtype.type(1)
    for block in prange((width + 63) // 64):
        columns = slice(block * 64, min(width, block * 64 + 64))
        out[:, columns], share[:, columns] = -np.inf, 0
        for i in range(nodes):
            here = x[i, columns]
            highest, holders = out[graph[i], columns], share[graph[i], columns]
            for f in range(len(here)):
                value, top = here[f], highest[f]
                more = (value > top) | (value != value)
                again = holders[f] + one if value == top else holders[f]
                holders[f] = one if more else again
                highest[f] = value if more else top
        for g in range(len(out)):
            highest, holders = out[g, columns], share[g, columns]
            for f in range(len(holders)):
                if holders[f] > 0:
                    holders[f] = 1 / holders[f]
                else:
                    highest[f] = 0


@backend.jit(parallel=True)
def _largest_backward(x, graph, out, grad, grad_x):  # type: ignore[no-untyped-def]
    nodes, width = x.shape
    for i in prange(nodes):
        g = graph[i]
        for f in range(width):
            grad_x[i, f] = grad[g, f] if x[i, f] == out[g, f] else 0
