"""Sparse node features, such as bags of words: only what is not zero is stored and dropped."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from numba import prange
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.graphs.graph import check_features
from edgewise.kernels import backend
from edgewise.kernels.dropout import kept_factors
from edgewise.kernels.products import multiply

# With more entries a column than this, the gradient of a weight is summed by rows, in so many
# parts whatever the number of threads.
ENTRIES_A_COLUMN, PARTS = 64, 8


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
        dtype = backend.accumulator(self.value, weight)
        message = self.value.to(dtype).unsqueeze(1) * weight.to(dtype)[self.column.long()]
        rows = torch.arange(len(self), device=self.device)
        rows = rows.repeat_interleave(self.start.diff(), output_size=len(self.value))
        out = message.new_zeros(len(self), weight.size(1)).index_add(0, rows, message)
        return out.to(weight.dtype)

    def to_dense(self) -> Float[Tensor, "nodes features"]:
        """The same features with their zeros."""
        rows = torch.arange(len(self), device=self.device).repeat_interleave(self.start.diff())
        return self.value.new_zeros(self.shape).index_put((rows, self.column.long()), self.value)

    def to(self, device: torch.device | str) -> "SparseFeatures":
        """The same features on a device."""
        moved: dict[str, Any] = {
            name: value.to(device)
            for name, value in vars(self).items()
            if isinstance(value, Tensor)
        }
        return replace(self, **moved)

    def dropped(self, p: float, key: int) -> "SparseFeatures":
        """A copy in which each stored number is zero with probability ``p``."""
        if p == 0:
            return self
        return replace(self, value=self.value * kept_factors(key, len(self.value), p, self.value))


Features = Tensor | SparseFeatures


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
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        x = ctx.features
        if len(x.value) > ENTRIES_A_COLUMN * x.shape[1]:
            return None, _by_rows(x, grads[0])
        out = grads[0].new_empty(x.shape[1], 1, grads[0].size(1))
        multiply(x.column_start, x.row, x.order, x.value, grads[0].unsqueeze(1), out)
        return None, out.squeeze(1)


def _by_rows(x: SparseFeatures, grad: Float[Tensor, "nodes out"]) -> Float[Tensor, "features out"]:
    """``x.T @ grad`` in the order of the rows: the result is small and stays in the cache."""
    shares = torch.arange(PARTS + 1) * len(x.value) // PARTS
    part = torch.searchsorted(x.start, shares)
    sums = grad.new_empty(PARTS, x.shape[1], grad.size(1))
    with backend.running:
        _sum_by_rows(part.numpy(), backend.unsigned(x.start), backend.unsigned(x.column),
                     x.value.numpy(), grad.contiguous().numpy(), sums.numpy())  # fmt: skip
    return sums.sum(0)


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def _sum_by_rows(part, start, column, value, grad, sums):  # type: ignore[no-untyped-def]
    for p in prange(PARTS):
        sums[p] = 0
        for i in range(part[p], part[p + 1]):
            for e in range(start[i], start[i + 1]):
                weight, j = value[e], column[e]
                for f in range(grad.shape[1]):
                    sums[p, j, f] += weight * grad[i, f]


def _starts(index: Int[Tensor, " entries"], count: int) -> Int[Tensor, " count_and_one"]:
    counts = torch.bincount(index, minlength=count)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
