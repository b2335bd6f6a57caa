"""Sparse node features, such as bags of words: only what is not zero is stored and dropped."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from edgewise.graph import check_features
from edgewise.kernels import backend
from edgewise.kernels.dropout import kept_factors
from edgewise.kernels.products import multiply


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """Node features in CSR form, with their transpose beside them.

    Stands in for a dense ``x`` wherever a layer multiplies it with its weight:

        >>> x = sparse_features(torch.eye(3))
        >>> x @ torch.ones(3, 2)
        tensor([[1., 1.],
                [1., 1.],
                [1., 1.]])
    """

    shape: tuple[int, int]
    start: Int[Tensor, " rows_and_one"]
    column: Int[Tensor, " entries"]
    value: Float[Tensor, " entries"]
    column_start: Int[Tensor, " columns_and_one"]
    row: Int[Tensor, " entries"]  # by columns
    order: Int[Tensor, " entries"]  # where each entry by columns stands by rows

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def dtype(self) -> torch.dtype:
        return self.value.dtype

    @property
    def device(self) -> torch.device:
        return self.value.device

    def __matmul__(self, weight: Float[Tensor, "features out"]) -> Float[Tensor, "nodes out"]:
        if backend.compiled(self.value, weight):
            return _Multiply.apply(self, weight)
        message = self.value.unsqueeze(1) * weight[self.column.long()]
        rows = torch.arange(len(self), device=self.device).repeat_interleave(self.start.diff())
        return weight.new_zeros(len(self), weight.size(1)).index_add(0, rows, message)

    def dropped(self, p: float, key: int) -> "SparseFeatures":
        """A copy in which each stored number is zero with probability ``p``."""
        if p == 0:
            return self
        return replace(self, value=self.value * kept_factors(key, len(self.value), p, self.value))


def sparse_features(x: Tensor) -> SparseFeatures:
    """Store a dense ``x`` without its zeros."""
    check_features(x)
    row, column = x.nonzero(as_tuple=True)
    order = torch.argsort(column, stable=True)
    return SparseFeatures(
        shape=(x.size(0), x.size(1)),
        start=_starts(row, x.size(0)),
        column=column.int(),
        value=x.detach()[row, column],
        column_start=_starts(column, x.size(1)),
        row=row[order].int(),
        order=order.int(),
    )


def compact_features(x: Tensor, *, densest: float = 0.25) -> "Tensor | SparseFeatures":
    """``x`` without its zeros if at most ``densest`` of it is not zero, else ``x`` itself."""
    if x.requires_grad or x.numel() == 0 or x.count_nonzero() > densest * x.numel():
        return x
    return sparse_features(x)


class _Multiply(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: SparseFeatures, weight: Tensor) -> Tensor:
        ctx.features = features
        out = weight.new_empty(len(features), 1, weight.size(1))
        multiply(features.start, features.column, None, features.value, weight.unsqueeze(1), out)
        return out.squeeze(1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        x = ctx.features
        out = grads[0].new_empty(x.shape[1], 1, grads[0].size(1))
        multiply(x.column_start, x.row, x.order, x.value, grads[0].unsqueeze(1), out)
        return None, out.squeeze(1)


def _starts(index: Int[Tensor, " entries"], count: int) -> Int[Tensor, " count_and_one"]:
    counts = torch.bincount(index, minlength=count)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
