"""A matrix per channel as a linear operator on node features. Nothing here learns.

Row ``i`` gathers: ``(E X)_i = sum_j E_ij X_j``. All channels of all graphs of a batch are one
sparse matrix.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.kernels import backend
from edgewise.kernels.cuts import cut_pattern
from edgewise.kernels.outer import outer_values
from edgewise.kernels.pattern import Pattern, stack
from edgewise.kernels.products import product
from edgewise.kernels.registers import whole_registers


@dataclass(frozen=True, eq=False)
class SparseOperator:
    """A matrix per channel, its entries stored: what :func:`row` and :func:`symmetric` give.

    Of sampled neighbours, ``rows`` says how many nodes gather: the first ones.
    """

    pattern: Pattern
    value: Float[Tensor, " entries"]
    rows: int | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """``(nodes, nodes, channels)``."""
        return self.pattern.num_nodes, self.pattern.num_nodes, self.pattern.channels

    @property
    def channels(self) -> int:
        return self.pattern.channels

    def __matmul__(self, x: Tensor) -> Float[Tensor, "rows channels features"]:
        """``x`` is ``[nodes, features]``, or ``[nodes, channels, features]``: one each."""
        z = _per_channel(x, self.shape)
        return product(self.pattern, self.value, z, rows=self.rows, turned=self._turned)

    def mean(self, x: Tensor) -> Float[Tensor, "rows features"]:
        """``(self @ x).mean(1)``: the channels are joined on the way."""
        z = _per_channel(x, self.shape)
        out = product(self.pattern, self.value, z, summed=True, rows=self.rows, turned=self._turned)
        return out.squeeze(1) / self.channels

    def _turned(self) -> Float[Tensor, " entries"] | None:
        """The values in the order of the transpose; None where they are learnt."""
        return None if self.value.requires_grad else self._turned_values

    @cached_property
    def _turned_values(self) -> Float[Tensor, " entries"]:
        """Made once, and when a product asks for them."""
        return backend.take(self.value, self.pattern.transpose.order)

    def values_by_hub(self) -> Float[Tensor, " entries"] | None:
        """The values column by column, one channel after the other; None where they are learnt."""
        return None if self.value.requires_grad else self._values_by_hub

    @cached_property
    def _values_by_hub(self) -> Float[Tensor, " entries"]:
        return backend.take(self.value, self.pattern.hub_links[1])

    @property
    def T(self) -> "SparseOperator":
        turned = self.pattern.transpose
        return SparseOperator(turned.pattern, self.value[turned.order.long()])

    @property
    def formed(self) -> "SparseOperator":
        """The operator with all its entries stored: this one."""
        return self

    def to_dense(self) -> Float[Tensor, "nodes nodes channels"]:
        """Materialise. For tests and small plots: quadratic in the number of nodes."""
        stored = self._stored
        place = (stored._row, stored.pattern.column.long(), stored._channel)
        return stored.value.new_zeros(self.shape).index_put(place, stored.value)

    def entries(
        self,
    ) -> tuple[Int[Tensor, "2 entries"], Float[Tensor, "entries channels"]]:
        """``edge_index`` and ``edge_attr`` of every pair that is not zero in some channel."""
        stored, nodes = self._stored, max(self.pattern.num_nodes, 1)
        key, place = torch.unique(stored._row * nodes + stored.pattern.column, return_inverse=True)
        attr = self.value.new_zeros(len(key), self.channels)
        return (
            torch.stack([key // nodes, key % nodes]),
            attr.index_put((place, stored._channel), stored.value),
        )

    def repeat_channels(self, times: int) -> "SparseOperator":
        """The same channels over again, ``times`` in all: one set for each attention head."""
        if times == 1:
            return self
        stored = self._stored
        pattern, order = stack(
            stored._row.repeat(times),
            stored.pattern.column.long().repeat(times),
            torch.cat([stored._channel + copy * self.channels for copy in range(times)]),
            self.pattern.num_nodes,
            self.channels * times,
        )
        return SparseOperator(pattern, stored.value.repeat(times)[order], self.rows)

    @property
    def _stored(self) -> "SparseOperator":
        """The operator with all its self-loops stored."""
        lone, p = self.pattern.lone, self.pattern
        if not len(lone):
            return self
        node = lone // p.channels
        pattern, order = stack(
            torch.cat([self._row, node]),
            torch.cat([p.column.long(), node]),
            torch.cat([self._channel, lone % p.channels]),
            p.num_nodes,
            p.channels,
        )
        value = torch.cat([self.value, self.value.new_ones(len(lone))])
        return SparseOperator(pattern, value[order])

    @property
    def _row(self) -> Tensor:
        return self.pattern.row // self.channels

    @property
    def _channel(self) -> Tensor:
        return self.pattern.row % self.channels


@dataclass(frozen=True, eq=False)
class DoublyStochastic:
    r"""One doubly stochastic matrix per channel, kept as its sparse factor.

    .. math::
        E_{\cdot\cdot p} = B_p B_p^\top, \qquad B_p = \tilde E_p \, \mathrm{diag}(c_p)^{-1/2}

    ``B`` lives on the edges; ``E`` reaches two hops and is never formed to be applied, at a
    cost that is linear in the edges. It is symmetric, whatever the direction of the edges.
    """

    factor: SparseOperator

    @property
    def shape(self) -> tuple[int, int, int]:
        """``(nodes, nodes, channels)``."""
        return self.factor.shape

    @property
    def channels(self) -> int:
        return self.factor.channels

    def __matmul__(self, x: Tensor) -> Float[Tensor, "nodes channels features"]:
        """``x`` is ``[nodes, features]``, or ``[nodes, channels, features]``: one each."""
        return _first_columns(self.factor @ self._pooled(x), x)

    def mean(self, x: Tensor) -> Float[Tensor, "nodes features"]:
        """``(self @ x).mean(1)``: the channels are joined on the way."""
        return _first_columns(self.factor.mean(self._pooled(x)), x)

    def _pooled(self, x: Tensor) -> Float[Tensor, "nodes channels filled"]:
        """``B^T x``, padded with zeros for the product that follows."""
        factor, z = self.factor, whole_registers(_per_channel(x, self.shape))
        return product(factor.pattern, factor.value, z, transposed=True, turned=factor._turned)

    @property
    def T(self) -> "DoublyStochastic":
        return self

    @cached_property
    def formed(self) -> SparseOperator:
        """The two-hop matrix with its entries stored, if it fits into memory."""
        both = self.factor.pattern.outer
        return SparseOperator(both, outer_values(self.factor.pattern, self.factor.value, both))

    def to_dense(self) -> Float[Tensor, "nodes nodes channels"]:
        """Materialise. For tests and small plots: quadratic in the number of nodes."""
        factor = self.factor.to_dense()
        return torch.einsum("ikp,jkp->ijp", factor, factor)

    def entries(
        self,
    ) -> tuple[Int[Tensor, "2 entries"], Float[Tensor, "entries channels"]]:
        """``edge_index`` and ``edge_attr`` of every pair within two hops."""
        return self.formed.entries()

    def repeat_channels(self, times: int) -> "DoublyStochastic":
        """The same channels over again, ``times`` in all: one set for each attention head."""
        return self if times == 1 else DoublyStochastic(self.factor.repeat_channels(times))


@dataclass(frozen=True, eq=False)
class SampledFactors:
    """Doubly stochastic channels of sampled neighbours: two factors, drawn each for itself.

    The expectation of their product is the product of their expectations.
    """

    gather: SparseOperator  # rows of B
    pool: SparseOperator  # columns of B

    @property
    def shape(self) -> tuple[int, int, int]:
        """``(nodes, nodes, channels)``."""
        return self.pool.shape

    @property
    def channels(self) -> int:
        return self.pool.channels

    def __matmul__(self, x: Tensor) -> Float[Tensor, "rows channels features"]:
        """``x`` is ``[nodes, features]``, or ``[nodes, channels, features]``: one each."""
        return self.gather @ (self.pool @ x)

    def mean(self, x: Tensor) -> Float[Tensor, "rows features"]:
        """``(self @ x).mean(1)``: the channels are joined on the way."""
        return self.gather.mean(self.pool @ x)


Operator = SparseOperator | DoublyStochastic


class _DoublyStochasticCut(DoublyStochastic):
    """Some graphs of a batch; the factor and the two-hop matrix are cut when they are used."""

    whole: DoublyStochastic
    offset: Tensor
    chosen: Tensor

    def __init__(self, whole: DoublyStochastic, offset: Tensor, chosen: Tensor) -> None:
        # Past the lock of a frozen dataclass; its field, the factor, is made when it is asked for.
        vars(self).update(whole=whole, offset=offset, chosen=chosen)

    @cached_property
    def factor(self) -> SparseOperator:
        return _cut_entries(self.whole.factor, self.offset, self.chosen)

    @cached_property
    def formed(self) -> SparseOperator:
        return _cut_entries(self.whole.formed, self.offset, self.chosen)


def cut(
    whole: Operator, offset: Int[Tensor, " graphs_and_one"], chosen: Int[Tensor, " chosen"]
) -> Operator:
    """The operator of some graphs, out of that of many which nothing joins, on the CPU.

    Args:
        whole: Of all graphs, one after the other.
        offset: The first node of each graph, and behind them the number of nodes.
        chosen: The graphs to cut out, in this order.
    """
    if isinstance(whole, SparseOperator):
        return _cut_entries(whole, offset, chosen)
    return _DoublyStochasticCut(whole, offset, chosen)


def _cut_entries(whole: SparseOperator, offset: Tensor, chosen: Tensor) -> SparseOperator:
    pattern = cut_pattern(whole.pattern, offset, chosen)
    return SparseOperator(pattern, whole.value[pattern.place])


def without_lone_loops(operator: Operator) -> Operator:
    """The same operator, smaller where channels join few nodes.

    A node that a channel joins to nothing but itself, with weight 1, keeps its features in this
    channel, whatever attention makes of them, so the self-loop need not be stored. Dropout would
    not find it there: only for layers without.
    """
    if isinstance(operator, DoublyStochastic):
        factor = without_lone_loops(operator.factor)
        assert isinstance(factor, SparseOperator)
        return DoublyStochastic(factor)
    pattern, value = operator.pattern, operator.value
    in_row, in_column = pattern.start.diff(), pattern.transpose.pattern.start.diff()
    if pattern.lone_loops or (in_row == 0).any():
        return operator
    loop = (pattern.row == pattern.stacked_column) & (value == 1)
    lone = loop & (in_row[pattern.row] == 1) & (in_column[pattern.row] == 1)
    start = pattern.start - torch.cat([pattern.start[:1], lone.cumsum(0)])[pattern.start]
    thin = Pattern(pattern.num_nodes, pattern.channels, start, pattern.column[~lone],
                   lone_loops=True)  # fmt: skip
    return SparseOperator(thin, value[~lone])


def _first_columns(out: Tensor, x: Tensor) -> Tensor:
    """As many columns as ``x`` has; all of them without a view, whose gradient would be a copy."""
    return out if out.size(-1) == x.size(-1) else out[..., : x.size(-1)]


def _per_channel(x: Tensor, shape: tuple[int, int, int]) -> Float[Tensor, "nodes groups features"]:
    nodes, _, channels = shape
    if x.dim() == 2 and x.size(0) == nodes:
        return x.unsqueeze(1)
    if x.dim() == 3 and x.size(0) == nodes and x.size(1) == channels:
        return x
    raise EdgewiseError(
        f"an operator of {nodes} nodes and {channels} channels cannot be applied to features of "
        f"shape {list(x.shape)}; give [{nodes}, features] or [{nodes}, {channels}, features]"
    )
