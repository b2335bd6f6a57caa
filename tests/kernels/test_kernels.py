"""A compiled kernel gives what its plain version gives, values and gradients."""

import math
import os
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from math import sqrt

import numba
import numpy as np
import pytest
import torch
from drawn import graphs, noise
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from torch.nn.functional import elu
from torch.testing import assert_close

import edgewise as ew
from edgewise.graphs import features
from edgewise.kernels import attention, backend, lanes, outer, products
from edgewise.kernels.activation import drop, elu_and_drop
from edgewise.kernels.dropout import (
    draw_key,
    drop_twice,
    kept_by_two,
    kept_factors,
    plain_kept,
)
from edgewise.kernels.pattern import stack
from edgewise.nn.readouts import GraphReadout

CLOSE = {"rtol": 1e-10, "atol": 1e-12}
groups = st.sampled_from([1, 2])


@contextmanager
def threads(count):
    before = torch.get_num_threads(), numba.get_num_threads()
    ew.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        numba.set_num_threads(before[1])


def loops_of(graph, copies):
    """A pattern in which every row has entries, its channels over again for each group."""
    edge_index, edge_attr = ew.add_self_loops(*graph)
    operator = ew.row(edge_index, edge_attr, graph.num_nodes).repeat_channels(copies)
    return operator.pattern


def assert_same(compiled, plain, *inputs):
    """Both functions, applied to copies of the inputs, agree in values and in all gradients."""
    results = []
    for function in (compiled, plain):
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        out = function(*leaves)
        grads = torch.autograd.grad((out * noise(*out.shape, seed=9)).sum(), leaves)
        results.append((out, *grads))
    for one, other in zip(*results, strict=True):
        assert_close(one, other, **CLOSE)


@njit
def weighted_sum(rows, weight, out, count):
    sums = lanes.zeros(rows, count)
    for row in range(len(rows)):
        sums = lanes.multiply_add(sums, weight[row], lanes.load(sums, rows, row, 2))
    lanes.store(sums, out, 1, 3)
    return lanes.horizontal_sum(lanes.multiply_add(lanes.zeros(rows, count), sums, sums))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [4, 8])
def test_registers_hold_neighbouring_numbers(count, dtype):
    rows = noise(5, count + 4).numpy().astype(dtype)
    weight, out = noise(5, seed=1).numpy().astype(dtype), np.zeros((2, count + 5), dtype)
    squares = weighted_sum(rows, weight, out, (0,) * count)
    expected = weight @ rows[:, 2 : count + 2]
    np.testing.assert_allclose(out[1, 3 : count + 3], expected, rtol=1e-5)
    np.testing.assert_allclose(squares, expected @ expected, rtol=1e-5)
    out[1, 3 : count + 3] = 0
    assert not out.any()


@njit
def halves_exchanged(rows, out, count):
    zero = lanes.zeros(rows, count)
    both = lanes.concatenate(lanes.load(zero, rows, 0, 0), lanes.broadcast(zero, 3))
    lanes.prefetch(rows, (1, 0))
    other = lanes.concatenate(lanes.high_half(both), lanes.multiply(2, lanes.low_half(both)))
    lanes.store(other, out, 0, 0)


@pytest.mark.parametrize("count", [1, 4, 8])
def test_registers_are_joined_and_halved(count):
    rows, out = noise(2, count).numpy(), np.empty((1, 2 * count))
    halves_exchanged(rows, out, (0,) * count)
    np.testing.assert_array_equal(out[0], [*[3] * count, *(2 * rows[0])])


@pytest.mark.slow
@given(graph=graphs())
def test_patterns_and_transposes_agree(graph):
    entry, channel = graph.edge_attr.nonzero(as_tuple=True)
    row, column = graph.edge_index[:, entry]
    whole = row, column, channel, graph.num_nodes, graph.edge_attr.size(1)
    pattern, order = stack(*whole)
    with backend.plain_kernels():
        expected, expected_order = stack(*whole)
        expected.transpose  # noqa: B018 - laid out here, by the plain kernels
    assert torch.equal(order, expected_order)
    both = ((pattern, expected), (pattern.transpose.pattern, expected.transpose.pattern))
    for one, other in both:
        assert torch.equal(one.start, other.start)
        assert torch.equal(one.column, other.column)
    assert torch.equal(pattern.transpose.order, expected.transpose.order)


@pytest.mark.parametrize("transposed", [False, True])
@given(graph=graphs(), groups=groups, width=st.integers(1, 9))
def test_products_agree_for_any_width_and_groups(transposed, graph, groups, width):
    pattern = loops_of(graph, groups)
    assert_same(
        lambda value, z: products.product(pattern, value, z, transposed=transposed),
        lambda value, z: products.plain_product(pattern, value, z, transposed=transposed),
        noise(pattern.num_entries),
        noise(graph.num_nodes, groups, width, seed=1),
    )


@pytest.mark.parametrize("width", [3, 4, 8, 16])
@pytest.mark.parametrize("grad_of_value", [False, True])
def test_products_take_features_in_any_memory_order(width, grad_of_value):
    ones = torch.ones(6, 2, dtype=torch.float64)
    edge_index = torch.tensor([[0, 1, 2, 3, 0, 2], [1, 2, 3, 0, 0, 2]])
    pattern, order = stack(*edge_index.repeat(1, 2), torch.arange(2).repeat_interleave(6), 4, 2)
    value = ones.T.flatten()[order].clone().requires_grad_(grad_of_value)
    found = []
    for z in (noise(2, 4, width).transpose(0, 1), noise(2, 4, width).transpose(0, 1).contiguous()):
        z.requires_grad_()
        products.product(pattern, value, z).sin().sum().backward()
        found.append(z.grad)
    assert_close(*found)


def test_a_gradient_of_a_gradient_is_refused_and_plain_kernels_give_it():
    edge_index, x = torch.tensor([[0, 1, 2], [1, 2, 0]]), noise(3, 2).requires_grad_()
    for layer in (ew.ChannelConv(2, 4).double(), ew.ChannelAttention(2, 4).double()):
        for plain in (False, True):
            with ew.plain_kernels() if plain else nullcontext():
                out = layer(x, edge_index).tanh().sum()
                (grad,) = torch.autograd.grad(out, x, create_graph=True)
                x.grad = None
                if plain:
                    grad.square().sum().backward()
                    assert x.grad.abs().sum() > 0
                else:
                    with pytest.raises(RuntimeError, match="once_differentiable"):
                        grad.square().sum().backward()


@pytest.mark.parametrize("transposed", [False, True])
@given(graph=graphs(), groups=groups)
def test_products_add_up_their_channels(transposed, graph, groups):
    pattern = loops_of(graph, groups)
    way = {"transposed": transposed}
    assert_same(
        lambda value, z: products.product(pattern, value, z, summed=True, **way),
        lambda value, z: products.plain_product(pattern, value, z, **way).sum(1, keepdim=True),
        noise(pattern.num_entries),
        noise(graph.num_nodes, groups, 3, seed=1),
    )


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_wide_products_agree_where_features_outgrow_the_caches(transposed, groups):
    nodes, generator = 1100, torch.Generator().manual_seed(0)
    row, column = torch.randint(nodes, (2, 4000), generator=generator)
    channel = torch.randint(3, (4000,), generator=generator)
    pattern, _ = stack(row, column, channel, nodes, 3)
    z = noise(nodes, groups, 64, seed=1)
    assert z.numel() * z.element_size() > products.CACHE_BYTES
    assert_same(
        lambda value, z: products.product(pattern, value, z, transposed=transposed),
        lambda value, z: products.plain_product(pattern, value, z, transposed=transposed),
        noise(pattern.num_entries),
        z,
    )


@given(graph=graphs(), heads=groups)
def test_attention_rows_agree_and_sum_to_one(graph, heads):
    pattern = loops_of(graph, heads)
    edge = noise(pattern.num_entries).abs()
    edge[::3] = 0
    edge[pattern.row // pattern.channels == pattern.column] = 1
    scores = noise(graph.num_nodes, heads, seed=1), noise(graph.num_nodes, heads, seed=2)
    assert_same(
        lambda *inputs: attention.attention_rows(pattern, *inputs, 0.2),
        lambda *inputs: attention.plain_attention_rows(pattern, *inputs, 0.2),
        edge,
        *scores,
    )
    weight = attention.attention_rows(pattern, edge, *scores, 0.2)
    total = weight.new_zeros(graph.num_nodes * pattern.channels).index_add(0, pattern.row, weight)
    assert_close(total, torch.ones_like(total))


@given(graph=graphs())
def test_balanced_columns_agree(graph):
    pattern = loops_of(graph, 1)
    assert_same(
        lambda weight: attention.balance_columns(pattern, weight),
        lambda weight: attention.plain_balance_columns(pattern, weight),
        noise(pattern.num_entries).abs(),
    )


@pytest.mark.parametrize("slope", [-0.5, 0.0, 0.2, 1.0, 1.5])
@pytest.mark.parametrize("reach", [1.0, 30.0, 300.0, 1000.0])
@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-4), (torch.float64, 1e-10)])
def test_attention_rows_are_right_for_any_scores_and_slopes(dtype, close, reach, slope):
    edge_index = (torch.rand(9, 9, generator=torch.Generator().manual_seed(0)) < 0.4).nonzero().T
    pattern = ew.row(*ew.add_self_loops(edge_index, None, 9), 9).pattern
    scores = (reach * noise(9, 1, seed=seed) for seed in (1, 2))
    inputs = [tensor.to(dtype) for tensor in (noise(pattern.num_entries).abs(), *scores)]
    results = []
    for function, wide in (
        (attention.attention_rows, dtype),
        (attention.plain_attention_rows, torch.float64),
    ):
        leaves = [tensor.to(wide).requires_grad_() for tensor in inputs]
        weight = function(pattern, *leaves, slope)
        readout = noise(len(weight), seed=3).to(wide)
        grads = torch.autograd.grad((weight * readout).sum(), leaves)
        results.append([weight.double(), *(grad.double() for grad in grads)])
    for one, other in zip(*results, strict=True):
        assert_close(one, other, rtol=close, atol=close)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_attention_over_a_wide_range_of_scores_keeps_values_and_gradients_finite(dtype):
    edges = torch.tensor([[0, 0, 1, 2], [0, 1, 1, 2]])
    pattern = ew.row(edges, None, 3).pattern
    for reach in (1.0, 20.0, 80.0, 1000.0):
        target = (reach * noise(3, 1).clamp(-1, 1)).to(dtype).requires_grad_()
        source = torch.tensor([[reach], [-reach], [0.0]], dtype=dtype, requires_grad=True)
        edge = torch.ones(4, dtype=dtype, requires_grad=True)
        weight = attention.attention_rows(pattern, edge, target, source, 0.2)
        weight.pow(2).sum().backward()
        for tensor in (weight, edge.grad, target.grad, source.grad):
            assert torch.isfinite(tensor).all()


@pytest.mark.slow
@given(graph=graphs())
def test_outer_values_agree_with_the_plain_ones_and_with_the_dense_product(graph):
    pattern = loops_of(graph, 1)
    both = pattern.outer
    value = noise(pattern.num_entries).abs()
    assert_same(
        lambda value: outer.outer_values(pattern, value, both),
        lambda value: outer.plain_outer_values(pattern, value, value, both),
        value,
    )
    factor = ew.SparseOperator(pattern, value).to_dense()
    formed = ew.SparseOperator(both, outer.outer_values(pattern, value, both)).to_dense()
    assert_close(formed, torch.einsum("ikp,jkp->ijp", factor, factor), **CLOSE)


@given(key=st.integers(0, 2**62 - 1), count=st.integers(0, 3000), p=st.floats(0, 0.999))
def test_the_dropout_hash_is_the_same_bit_for_bit_compiled_and_plain(key, count, p):
    like = torch.empty(0)
    compiled = kept_factors(key, count, p, like)
    with ew.plain_kernels():
        plain = kept_factors(key, count, p, like)
    assert torch.equal(compiled, plain)
    assert torch.equal(compiled != 0, plain_kept(key, count, p))


@given(key=st.integers(0, 2**62 - 1), count=st.integers(0, 3000), p=st.floats(0, 0.999))
def test_two_masks_in_one_are_the_two_halves_of_one_twice_as_long(key, count, p):
    like = torch.empty(0)
    both = kept_by_two(key, count, p, like)
    with ew.plain_kernels():
        assert torch.equal(both, kept_by_two(key, count, p, like))
    halves = torch.stack([both & 1, both >> 1]).flatten().bool()
    assert torch.equal(halves, plain_kept(key, 2 * count, p))


@pytest.mark.parametrize("used", [(0, 1), (0,), (1,)])
def test_dropping_twice_agrees_with_the_plain_way_in_values_and_gradients(used):
    found = []
    for plain in (False, True):
        value = noise(500).requires_grad_()
        with ew.plain_kernels() if plain else nullcontext():
            both = drop_twice(value, 0.4, key=7)
        assert (both[0] == 0).sum() != (both[1] == 0).sum()
        sum((both[k] * noise(500, seed=k + 1)).sum() for k in used).backward()
        found.append((*both, value.grad))
    for one, other in zip(*found, strict=True):
        assert_close(one, other, **CLOSE)


def test_rows_without_weight_have_finite_gradients_in_attention():
    pattern = ew.row(torch.tensor([[0, 0, 1, 2], [0, 1, 1, 2]]), None, 3).pattern
    assert_same(
        lambda *inputs: attention.attention_rows(pattern, *inputs, 0.2),
        lambda *inputs: attention.plain_attention_rows(pattern, *inputs, 0.2),
        torch.tensor([0.0, 0.0, 1.0, 2.0], dtype=torch.float64),
        noise(3, 1).abs(),
        noise(3, 1, seed=1).abs(),
    )


@pytest.mark.parametrize("p", [0.1, 0.5, 0.6, 0.9])
@pytest.mark.parametrize("key", [0, 1, 2**32, 2**61 + 12345])
def test_the_rate_of_dropout_is_within_binomial_bounds_and_the_expectation_stays(p, key):
    count = 100_000
    factors = kept_factors(key, count, p, torch.empty(0, dtype=torch.float64))
    dropped = int((factors == 0).sum())
    assert abs(dropped - p * count) < 5 * sqrt(count * p * (1 - p))
    assert factors.max().item() == pytest.approx(1 / (1 - p), rel=1e-9)
    assert factors.mean().item() == pytest.approx(1, abs=5 * sqrt(p / (1 - p) / count))


@pytest.mark.parametrize("seed", range(5))
def test_masks_of_drawn_keys_and_of_neighbours_are_independent(seed):
    torch.manual_seed(seed)
    one, other = draw_key(), draw_key()
    count, like = 100_000, torch.empty(0, dtype=torch.float64)
    first = (kept_factors(one, count, 0.5, like) > 0).double() - 0.5
    second = (kept_factors(other, count, 0.5, like) > 0).double() - 0.5
    for pair in ((first, second), (first[1:], first[:-1]), (first[1:], second[:-1])):
        assert abs((pair[0] * pair[1]).mean().item()) < 5 * 0.25 / sqrt(count)


ATTENTION_AS_BITS = """
import torch, edgewise as ew
generator = torch.Generator().manual_seed(0)
edges = torch.randint(0, 60, (2, 400), generator=generator)
edges[1, :80] = 0
edges = edges.unique(dim=1)
x = torch.randn(60, 5, generator=generator)
torch.manual_seed(1)
layer = ew.ChannelAttention(5, 4, edge_channels=3)
out = layer(x, edges, torch.ones(edges.size(1), 3))
out.square().sum().backward()
for tensor in (out, *(parameter.grad for parameter in layer.parameters())):
    print(tensor.detach().numpy().tobytes().hex())
"""


@pytest.mark.slow
def test_kernels_just_compiled_and_from_the_cache_give_the_same_bits(tmp_path):
    """LLVM must not be free to order sums: it compiles the two in different ways."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", ATTENTION_AS_BITS]
    first, second = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert first == second


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="this machine has one core")
def test_one_thread_and_two_give_the_same_bits():
    edge_index = torch.stack([torch.arange(300) % 50, (torch.arange(300) * 7 + 3) // 6 % 50])
    edge_index = torch.unique(edge_index, dim=1)
    value, x = torch.rand(edge_index.size(1), 3), torch.randn(50, 5)

    def results():
        leaf = x.clone().requires_grad_()
        weight = value.clone().requires_grad_()
        loops = ew.add_self_loops(edge_index, weight, 50)
        bias = torch.zeros(15, requires_grad=True)
        out = (ew.doubly_stochastic(*loops, 50) @ leaf).flatten(1)
        out = elu_and_drop(out, bias, 0.4, key=3)
        out.pow(2).sum().backward()
        return out, leaf.grad, weight.grad, bias.grad, kept_factors(77, 10_000, 0.6, x)

    with threads(1):
        alone = results()
    with threads(2):
        together = results()
    assert all(torch.equal(one, two) for one, two in zip(alone, together, strict=True))


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="this machine has one core")
@pytest.mark.parametrize("materialize", [False, None])
def test_attention_and_pooling_give_the_same_bits_on_one_thread_and_two(materialize):
    edge_index = torch.stack([torch.arange(300) % 50, (torch.arange(300) * 7 + 3) // 6 % 50])
    edge_index = torch.unique(edge_index, dim=1)
    x = torch.rand(90, 70) * (torch.rand(90, 70) < 0.9)  # many values a column: by rows
    assert x.count_nonzero() > features.ENTRIES_A_COLUMN * 70
    settings = ew.ModelSettings(layer="attention", hidden=4, dropout=0.3)
    nodes = ew.ChannelNetwork(70, 3, 1, settings, direction="as_given")
    for block in nodes.blocks:
        block.layer.materialize = materialize
    pooled = replace(settings, head="linear")
    graphs = ew.ChannelNetwork(70, 2, 1, pooled, readout=GraphReadout(), direction="as_given")
    many = ew.Batch.of(x, edge_index, graph=torch.arange(90) // 10)
    whole = ew.Batch.of(ew.sparse_features(x), edge_index)

    def results():
        torch.manual_seed(0)
        outs = nodes(whole), graphs(many)
        leaves = [*nodes.parameters(), *graphs.parameters()]
        return *outs, *torch.autograd.grad(sum(out.pow(2).sum() for out in outs), leaves)

    with threads(1):
        alone = results()
    with threads(2):
        together = results()
    assert all(torch.equal(one, two) for one, two in zip(alone, together, strict=True))


def test_the_number_of_threads_reaches_torch_and_numba():
    with threads(1):
        assert (torch.get_num_threads(), numba.get_num_threads()) == (1, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(
    key=st.integers(0, 2**62 - 1),
    p=st.just(0.0) | st.floats(0, 0.95),
    rows=st.integers(0, 40),
    reach=st.sampled_from([4.0, 200.0]),
)
def test_bias_elu_and_dropout_together_are_the_three_one_by_one(dtype, key, p, rows, reach):
    results = []
    for function in (elu_and_drop, lambda x, bias, p, key: drop(elu(x + bias), p, key)):
        x, bias = (reach * noise(rows, 5, seed=rows)).to(dtype), noise(5, seed=2).to(dtype)
        x[:1] = -bias
        leaves = (x.requires_grad_(), bias.requires_grad_())
        out = function(x, bias, p, key)
        (out * noise(rows, 5, seed=1).to(dtype)).sum().backward()
        results.append((out, *(leaf.grad for leaf in leaves)))
    for one, other in zip(*results, strict=True):
        assert_close(one, other, rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=1e-6)


def test_what_is_no_number_stays_none_through_elu():
    x = torch.tensor([[math.nan, -math.inf, math.inf]])
    out = elu_and_drop(x, None, 0.0, 0)
    assert out.isnan().tolist() == [[True, False, False]]
    assert out[0, 1:].tolist() == [-1.0, math.inf]


def test_dropout_of_features_that_do_not_stand_in_order_touches_the_same_elements():
    x = torch.randn(7, 11).T  # not contiguous
    assert torch.equal(elu_and_drop(x, None, 0.5, 3) == 0, drop(torch.ones(11, 7), 0.5, 3) == 0)


@given(
    rows=st.integers(1, 12),
    columns=st.integers(1, 12),
    density=st.floats(0, 1),
    seed=st.integers(0, 1000),
)
def test_sparse_features_multiply_as_dense_ones_do(rows, columns, density, seed):
    x = noise(rows, columns, seed=seed)
    x *= torch.rand(rows, columns, generator=torch.Generator().manual_seed(seed)) < density
    sparse = ew.sparse_features(x)
    assert sparse.shape == (rows, columns)
    assert_same(lambda w: sparse @ w, lambda w: x @ w, noise(columns, 3, seed=1))
    with ew.plain_kernels():
        assert_same(lambda w: sparse @ w, lambda w: x @ w, noise(columns, 3, seed=1))


def test_many_words_a_column_are_summed_by_rows_alike():
    x = noise(500, 4).clamp(min=0)
    sparse = ew.sparse_features(x)
    assert len(sparse.value) > features.ENTRIES_A_COLUMN * 4
    assert_same(lambda w: sparse @ w, lambda w: x @ w, noise(4, 3, seed=1))


def test_dropped_sparse_features_lose_the_same_entries_compiled_and_plain():
    x = noise(40, 30).clamp(min=0)
    sparse, identity = ew.sparse_features(x), torch.eye(30, dtype=torch.float64)
    compiled = sparse.dropped(0.3, key=8)
    with ew.plain_kernels():
        plain = sparse.dropped(0.3, key=8) @ identity
    dense = compiled @ identity
    assert_close(dense, plain)
    kept = dense != 0
    assert_close(dense[kept], x[kept] / 0.7, rtol=1e-8, atol=0)
    share = kept.sum().item() / (x != 0).sum().item()
    assert share == pytest.approx(0.7, abs=5 * sqrt(0.21 / (x != 0).sum().item()))
    assert sparse.dropped(0.0, key=8) is sparse


def test_features_are_compacted_only_where_most_are_zero_and_nobody_asks_for_gradients():
    words = torch.eye(10)
    assert isinstance(ew.compact_features(words), ew.SparseFeatures)
    assert ew.compact_features(words.requires_grad_()) is words
    full = torch.ones(3, 3)
    assert ew.compact_features(full) is full


def test_plain_kernels_end_with_their_block():
    x = torch.ones(1)
    assert backend.compiled(x)
    with ew.plain_kernels():
        assert not backend.compiled(x)
    assert backend.compiled(x)
    assert not backend.compiled(x.half())
