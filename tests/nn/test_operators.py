"""An operator may be clever as long as it equals the dense matrix of the paper's equations."""

from functools import partial

import pytest
import torch
import truth
from drawn import Drawn, alike, graphs, noise
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.testing import assert_close

import edgewise as ew
from edgewise.core.errors import EdgewiseError
from edgewise.kernels.backend import plain_kernels
from edgewise.kernels.pattern import stack
from edgewise.nn.normalization import symmetric_values
from edgewise.nn.operators import cut, without_lone_loops

MAKERS = {
    "doubly_stochastic": ew.doubly_stochastic,
    "symmetric": ew.symmetric,
    "row": ew.row,
    "gcn": ew.gcn,
}
EVERY_OPERATOR = pytest.mark.parametrize("name", MAKERS)
CLOSE = {"rtol": 1e-10, "atol": 1e-12}


def with_loops(graph):
    return Drawn(*ew.add_self_loops(*graph), graph.num_nodes)


def drawn_for(name, graph):
    """Doubly stochastic rows must not be empty; the others may be."""
    return with_loops(graph) if name == "doubly_stochastic" else graph


@EVERY_OPERATOR
@given(graph=graphs())
def test_every_operator_equals_its_dense_truth(name, graph):
    graph = drawn_for(name, graph)
    operator = MAKERS[name](*graph)
    expected = truth.NORMALIZATIONS[name](truth.dense(*graph))
    x = noise(graph.num_nodes, 3)
    assert operator.shape == tuple(expected.shape)
    assert operator.channels == graph.edge_attr.size(1)
    assert_close(operator.to_dense(), expected, **CLOSE)
    assert_close(operator @ x, torch.einsum("ijp,jf->ipf", expected, x), **CLOSE)
    assert_close(operator.mean(x), expected.mean(2) @ x, **CLOSE)


@EVERY_OPERATOR
@given(graph=graphs())
def test_the_transpose_is_that_of_the_dense_truth(name, graph):
    graph = drawn_for(name, graph)
    turned = MAKERS[name](*graph).T
    expected = truth.NORMALIZATIONS[name](truth.dense(*graph)).transpose(0, 1)
    x = noise(graph.num_nodes, 2)
    assert_close(turned.to_dense(), expected, **CLOSE)
    assert_close(turned @ x, torch.einsum("ijp,jf->ipf", expected, x), **CLOSE)
    assert_close(turned.T.to_dense(), expected.transpose(0, 1), **CLOSE)


@EVERY_OPERATOR
@given(graph=graphs())
def test_each_channel_can_have_features_of_its_own(name, graph):
    graph = drawn_for(name, graph)
    expected = truth.NORMALIZATIONS[name](truth.dense(*graph))
    x = noise(graph.num_nodes, graph.edge_attr.size(1), 3)
    out = MAKERS[name](*graph) @ x
    assert_close(out, torch.einsum("ijp,jpf->ipf", expected, x), **CLOSE)


@EVERY_OPERATOR
@given(graph=graphs())
def test_entries_list_every_pair_once_with_the_dense_values(name, graph):
    graph = with_loops(graph)
    expected = truth.NORMALIZATIONS[name](truth.dense(*graph))
    edge_index, edge_attr = MAKERS[name](*graph).entries()
    assert_close(truth.dense(edge_index, edge_attr, graph.num_nodes), expected, **CLOSE)
    assert len(set(map(tuple, edge_index.T.tolist()))) == edge_index.size(1)
    assert set(map(tuple, edge_index.T.tolist())) == {
        tuple(pair) for pair in expected.sum(dim=2).nonzero().tolist()
    }


@EVERY_OPERATOR
@given(graph=graphs())
def test_gradients_equal_those_of_the_dense_truth_also_at_edges_of_value_zero(name, graph):
    graph = with_loops(graph)
    value, x = graph.edge_attr.clone().requires_grad_(), noise(graph.num_nodes, 2).requires_grad_()
    out = MAKERS[name](graph.edge_index, value, graph.num_nodes) @ x
    readout = noise(*out.shape, seed=1)
    ours = torch.autograd.grad((out * readout).sum(), (value, x))

    raw = truth.dense(graph.edge_index, value, graph.num_nodes)
    expected = torch.einsum("ijp,jf->ipf", truth.NORMALIZATIONS[name](raw), x)
    for mine, true in zip(
        ours, torch.autograd.grad((expected * readout).sum(), (value, x)), strict=True
    ):
        assert_close(mine, true, rtol=1e-9, atol=1e-11)


def test_an_edge_of_value_zero_gets_a_gradient_that_is_not_zero():
    edge_index = torch.tensor([[0, 0, 1], [0, 1, 1]])
    value = torch.tensor([[1.0], [0.0], [1.0]], dtype=torch.float64, requires_grad=True)
    x = torch.tensor([[1.0], [3.0]], dtype=torch.float64)
    (ew.row(edge_index, value, 2) @ x)[0].sum().backward()
    # (1 + 3 v) / (1 + v) has the slope 3 - 1 at v = 0.
    assert value.grad[1].item() == pytest.approx(2)


@EVERY_OPERATOR
@pytest.mark.parametrize("kernels", ["compiled", "plain"])
def test_gradcheck_passes_in_features_and_edge_values(name, kernels, digraph):
    edge_index, value, nodes = digraph
    edge_index, value = ew.add_self_loops(edge_index, value + 0.1, nodes)
    x = noise(nodes, 2).requires_grad_()

    def apply(value, x):
        if kernels == "plain":
            with ew.plain_kernels():
                return MAKERS[name](edge_index, value, nodes) @ x
        return MAKERS[name](edge_index, value, nodes) @ x

    assert gradcheck(apply, (value.requires_grad_(), x))


@given(graph=graphs(max_nodes=8))
def test_rows_and_columns_of_doubly_stochastic_sum_to_one(graph):
    graph = with_loops(graph)
    dense = ew.doubly_stochastic(*graph).to_dense()
    one = torch.ones_like(dense[0])
    assert dense.min() >= 0
    assert_close(dense.sum(dim=0), one, rtol=0, atol=1e-12)
    assert_close(dense.sum(dim=1), one, rtol=0, atol=1e-12)


@given(graph=graphs())
def test_the_formed_matrix_is_the_factored_one(graph):
    operator = ew.doubly_stochastic(*with_loops(graph))
    x = noise(graph.num_nodes, 2)
    assert_close(operator.formed.to_dense(), operator.to_dense(), **CLOSE)
    assert_close(operator.formed @ x, operator @ x, **CLOSE)


def test_doubly_stochastic_names_the_nodes_and_the_channel_of_empty_rows():
    edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 2, 2]])
    value = torch.ones(4, 2)
    value[2:, 1] = 0
    with pytest.raises(EdgewiseError, match=r"channel 1 .*node\(s\) \[2, 3\].*add self-loops"):
        ew.doubly_stochastic(edge_index, value, 4)


@pytest.mark.parametrize("name", ["row", "symmetric", "gcn"])
def test_an_empty_row_gathers_nothing_and_its_gradients_are_finite(name, digraph):
    edge_index, value, nodes = digraph
    value, x = value.requires_grad_(), torch.ones(nodes, 1, dtype=torch.float64)
    out = MAKERS[name](edge_index, value, nodes) @ x
    assert not out[4].any()
    assert out[:4].sum() > 0
    out.sum().backward()
    assert torch.isfinite(value.grad).all()


@EVERY_OPERATOR
@given(graph=graphs(), per_channel=st.booleans())
def test_plain_and_compiled_kernels_agree_in_values_and_gradients(name, graph, per_channel):
    graph = with_loops(graph)
    middle = (graph.edge_attr.size(1),) if per_channel else ()
    readout = noise(graph.num_nodes, graph.edge_attr.size(1), 3, seed=1)

    def results():
        value = graph.edge_attr.clone().requires_grad_()
        x = noise(graph.num_nodes, *middle, 3).requires_grad_()
        operator = MAKERS[name](graph.edge_index, value, graph.num_nodes)
        out, entries = operator @ x, operator.entries()[1]
        ((out * readout).sum() + (entries**2).sum()).backward()
        return out, entries, value.grad, x.grad

    compiled = results()
    with ew.plain_kernels():
        plain = results()
    for one, other in zip(compiled, plain, strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-12)


@EVERY_OPERATOR
@given(graph=graphs(), times=st.integers(1, 3))
def test_repeated_channels_are_the_same_matrices_over_again(name, graph, times):
    operator = MAKERS[name](*with_loops(graph))
    repeated = operator.repeat_channels(times)
    assert repeated.shape == (*operator.shape[:2], operator.channels * times)
    assert_close(repeated.to_dense(), operator.to_dense().repeat(1, 1, times))


@EVERY_OPERATOR
def test_a_batch_is_normalised_graph_by_graph(name, digraph):
    edge_index, value, nodes = digraph
    edge_index, value = ew.add_self_loops(edge_index, value, nodes)
    both = MAKERS[name](
        torch.cat([edge_index, edge_index + nodes], 1), torch.cat([value, value]), 2 * nodes
    ).to_dense()
    one = MAKERS[name](edge_index, value, nodes).to_dense()
    assert_close(both[:nodes, :nodes], one)
    assert_close(both[nodes:, nodes:], one)
    assert not both[:nodes, nodes:].any()
    assert not both[nodes:, :nodes].any()


@EVERY_OPERATOR
def test_one_channel_of_ones_is_meant_where_no_values_are_given(name):
    edge_index = torch.tensor([[0, 1, 1], [1, 0, 1]])
    assert_close(
        MAKERS[name](edge_index, None, 2).to_dense(),
        MAKERS[name](edge_index, torch.ones(3, 1), 2).to_dense(),
    )


@EVERY_OPERATOR
def test_a_graph_without_nodes_or_edges_has_an_operator(name):
    nothing = torch.empty(2, 0, dtype=torch.long), torch.empty(0, 2)
    assert (MAKERS[name](*nothing, 0) @ torch.empty(0, 3)).shape == (0, 2, 3)
    if name != "doubly_stochastic":
        assert not (MAKERS[name](*nothing, 4) @ torch.ones(4, 3)).any()


def test_float32_gives_float32(digraph):
    edge_index, value, nodes = digraph
    edge_index, value = ew.add_self_loops(edge_index, value.float(), nodes)
    out = ew.doubly_stochastic(edge_index, value, nodes) @ torch.ones(nodes, 2)
    assert out.dtype == torch.float32
    assert_close(out, torch.ones(nodes, 2, 2), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(4, 3), (5,), (5, 3, 2), (5, 2, 3, 1)])
def test_features_of_a_wrong_shape_are_refused_with_the_right_one(shape, digraph):
    operator = ew.row(*digraph)
    with pytest.raises(EdgewiseError, match=r"\[5, features\] or \[5, 2, features\]"):
        operator @ torch.ones(shape, dtype=torch.float64)


def test_features_without_columns_give_none_and_change_nothing(digraph):
    edge_index, value, nodes = digraph
    value = value.clone().requires_grad_()
    out = ew.row(edge_index, value, nodes) @ torch.ones(nodes, 0, dtype=value.dtype)
    assert out.shape == (nodes, 2, 0)
    out.sum().backward()
    assert not value.grad.any()


@EVERY_OPERATOR
def test_arguments_are_not_changed(name, digraph):
    edge_index, value, nodes = digraph
    edge_index, value = ew.add_self_loops(edge_index, value, nodes)
    before = edge_index.clone(), value.clone()
    x = noise(nodes, 2)
    MAKERS[name](edge_index, value, nodes) @ x
    assert torch.equal(edge_index, before[0])
    assert torch.equal(value, before[1])
    assert torch.equal(x, noise(nodes, 2))


@pytest.mark.slow
@EVERY_OPERATOR
@given(parts=alike(max_size=5), data=st.data())
def test_a_cut_is_the_operator_of_the_chosen_graphs(name, parts, data):
    """Also what is built from it: products both ways, and the formed matrix and its pattern."""
    parts = [drawn_for(name, part) for part in parts]
    sizes = [part.num_nodes for part in parts]
    offset = torch.tensor([0, *sizes]).cumsum(0)
    chosen = data.draw(st.permutations(range(len(parts))))[: data.draw(st.integers(1, len(parts)))]
    whole = MAKERS[name](*side_by_side(parts))
    expected = MAKERS[name](*side_by_side([parts[k] for k in chosen]))
    found = cut(whole, offset, torch.tensor(chosen))
    x = noise(expected.shape[0], 2)
    # Sums over a column are added up in parts, whose borders hang on the size of the whole.
    assert_close(found.to_dense(), expected.to_dense())
    assert_close(found @ x, expected @ x)
    assert_close(found.T @ x, expected.T @ x)
    mine, theirs = found.formed.pattern, expected.formed.pattern
    assert_close(found.formed.value, expected.formed.value)
    for one, other in ((mine, theirs), (mine.outer, theirs.outer)):
        assert torch.equal(one.start, other.start)
        assert torch.equal(one.column, other.column)
        assert torch.equal(one.transpose.order, other.transpose.order)
        assert torch.equal(one.transpose.inverse, other.transpose.inverse)
        assert torch.equal(one.transpose.pattern.column, other.transpose.pattern.column)
        assert torch.equal(one.transpose.pattern.start, other.transpose.pattern.start)


@pytest.mark.slow
@EVERY_OPERATOR
@given(parts=alike(max_size=4), data=st.data())
def test_an_operator_without_its_lone_loops_is_the_same_operator(name, parts, data):
    """Bit for bit, also cut, transposed, formed and repeated; and with less in store."""
    parts = [with_loops(part) for part in parts]
    whole = MAKERS[name](*side_by_side(parts))
    thin = without_lone_loops(whole)
    x = noise(whole.shape[0], 2)
    for one, other in (
        (thin, whole),
        (thin.T, whole.T),
        (thin.formed, whole.formed),
        (thin.repeat_channels(2), whole.repeat_channels(2)),
    ):
        assert torch.equal(one.to_dense(), other.to_dense())
        assert torch.equal(one @ x, other @ x)
        assert torch.equal(one.mean(x), other.mean(x))
        assert all(torch.equal(*pair) for pair in zip(one.entries(), other.entries(), strict=True))
    with plain_kernels():
        assert_close(thin @ x, whole @ x, **CLOSE)
    offset = torch.tensor([0, *(part.num_nodes for part in parts)]).cumsum(0)
    chosen = torch.tensor(data.draw(st.permutations(range(len(parts)))))
    expected = cut(whole, offset, chosen)
    assert torch.equal(cut(thin, offset, chosen).formed @ x, expected.formed @ x)


def test_only_nodes_that_nothing_joins_lose_their_loop():
    """Channel 0 joins 0 to 1; in channel 1, node 0 alone has a loop of another weight."""
    edge_index = torch.tensor([[0, 0, 1, 2], [0, 1, 1, 2]])
    edge_attr = torch.tensor([[1.0, 0.5], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    thin = without_lone_loops(ew.row(edge_index, edge_attr, 3))
    assert thin.pattern.lone.tolist() == [1, 3, 4, 5]  # row's 0.5 / 0.5 is 1, too
    assert (
        without_lone_loops(ew.row(edge_index[:, 1:], edge_attr[1:], 3)).pattern.lone.tolist() == []
    )


def side_by_side(parts):
    """Graphs of the same channels as one graph."""
    first, edges = 0, []
    for part in parts:
        edges.append(part.edge_index + first)
        first += part.num_nodes
    return torch.cat(edges, dim=1), torch.cat([part.edge_attr for part in parts]), first


def test_symmetric_attention_has_finite_gradients_where_edges_are_nearly_zero():
    edge_index = torch.tensor([[0, 0, 1, 2, 2], [0, 1, 1, 0, 2]])
    pattern, order = stack(*edge_index, torch.zeros(5, dtype=torch.long), 3, 1)
    value = torch.tensor([1e-21, 1e-30, 1.0, 1e-35, 3e-7])[order]
    score = torch.tensor([90.0, -90.0, 5.0, -80.0, 20.0])[order]
    row, column = edge_index[:, order]

    def dense(value, score):
        entry = value * score.exp()  # in double precision it is in range
        sums = (torch.zeros(3, dtype=entry.dtype).index_add(0, at, entry) for at in (row, column))
        by_row, by_column = sums
        return entry / (by_row[row] * by_column[column]).sqrt()

    found = []
    for dtype, values in (
        (torch.float32, partial(symmetric_values, pattern)),
        (torch.float64, dense),
    ):
        inputs = value.to(dtype).log().requires_grad_(), score.to(dtype).requires_grad_()
        out = values(inputs[0].exp(), inputs[1])
        weights = torch.arange(1.0, 6.0, dtype=dtype)
        found.append([out, *torch.autograd.grad(out @ weights, inputs)])
    for ours, theirs in zip(*found, strict=True):
        assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-6)
