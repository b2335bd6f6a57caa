"""Edge attributes become non-negative channels; gradients pass, nothing is changed in place."""

import pytest
import torch
import truth
from drawn import graphs, noise
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import edgewise as ew
from edgewise.core.errors import EdgewiseError
from edgewise.graphs.channels import is_symmetric

values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12)


def column(numbers):
    return torch.tensor(numbers, dtype=torch.float64)


@given(graph=graphs())
def test_direction_becomes_forward_backward_and_both(graph):
    edge_index, edge_attr = ew.directed_channels(*graph[:2])
    assert edge_attr.size(1) == 3 * graph.edge_attr.size(1)
    expected = truth.directed(truth.dense(*graph))
    assert_close(truth.dense(edge_index, edge_attr, graph.num_nodes), expected)
    assert set(map(tuple, edge_index.T.tolist())) == set(map(tuple, edge_index.flip(0).T.tolist()))


@given(graph=graphs())
def test_undirected_channels_are_the_sum_of_both_ways(graph):
    edge_index, edge_attr = ew.undirected_channels(*graph[:2])
    raw = truth.dense(*graph)
    both = truth.dense(edge_index, edge_attr, graph.num_nodes)
    assert_close(both, raw + raw.transpose(0, 1))


@given(graph=graphs(), mirrored=st.booleans())
def test_edges_are_symmetric_where_their_matrix_is_symmetric(graph, mirrored):
    edge_index, edge_attr, num_nodes = graph
    if mirrored:
        edge_index, edge_attr = ew.undirected_channels(edge_index, edge_attr)
    raw = truth.dense(edge_index, edge_attr, num_nodes)
    assert is_symmetric(edge_index, edge_attr) == torch.equal(raw, raw.transpose(0, 1))
    assert is_symmetric(edge_index, edge_attr) or not mirrored


def test_edges_back_with_other_values_are_not_the_same_edges():
    there_and_back = torch.tensor([[0, 1], [1, 0]])
    assert is_symmetric(there_and_back)
    assert not is_symmetric(there_and_back, torch.tensor([[2.0], [5.0]]))


def test_a_pair_joined_both_ways_keeps_each_way_s_value():
    edge_index, edge_attr = ew.directed_channels(
        torch.tensor([[0, 1], [1, 0]]), torch.tensor([[2.0], [5.0]])
    )
    assert edge_index.tolist() == [[0, 1], [1, 0]]
    assert edge_attr.tolist() == [[2.0, 5.0, 7.0], [5.0, 2.0, 7.0]]


def test_a_self_loop_is_its_own_way_back():
    _, edge_attr = ew.directed_channels(torch.tensor([[1], [1]]))
    assert edge_attr.tolist() == [[1.0, 1.0, 2.0]]


@given(graph=graphs(), fill=st.floats(0.1, 3))
def test_self_loops_stand_where_there_were_none_and_adding_twice_changes_nothing(graph, fill):
    edge_index, edge_attr = ew.add_self_loops(*graph, fill=fill)
    before = truth.dense(*graph)
    after = truth.dense(edge_index, edge_attr, graph.num_nodes)
    expected = before.clone()
    for i in range(graph.num_nodes):
        expected[i, i] = torch.where(before[i, i] > 0, before[i, i], fill)
    assert_close(after, expected)
    again = ew.add_self_loops(edge_index, edge_attr, graph.num_nodes, fill=2 * fill)
    assert_close(truth.dense(*again, graph.num_nodes), after)


def test_self_loops_are_added_to_edges_numbered_in_32_bits():
    edge_index, _ = ew.add_self_loops(torch.tensor([[0, 1], [1, 1]], dtype=torch.int32), None, 2)
    assert edge_index.dtype == torch.int32
    assert edge_index.tolist() == [[0, 0, 1], [1, 0, 1]]


def test_a_category_becomes_a_channel_and_the_order_is_given_back():
    edge_attr, categories = ew.one_hot_channels(["b", "a", "b"])
    assert (edge_attr.tolist(), categories) == ([[0, 1], [1, 0], [0, 1]], ("a", "b"))
    again, same = ew.one_hot_channels(["b"], categories)
    assert (again.tolist(), same) == ([[0, 1]], categories)
    assert ew.one_hot_channels(torch.tensor([10, 9]))[1] == (9, 10)


def test_labels_of_several_types_have_an_order():
    assert ew.one_hot_channels(["b", None, 2, "a", 1])[1] == (None, 1, 2, "a", "b")


def test_an_unknown_category_is_named():
    with pytest.raises(EdgewiseError, match=r"\[owes\] are not among the categories \[pays\]; add"):
        ew.one_hot_channels(["pays", "owes"], ["pays"])


@given(numbers=values)
def test_signed_values_split_into_two_parts_that_do_not_overlap(numbers):
    value = column(numbers)
    positive, negative = ew.signed_channels(value).T
    assert_close(positive - negative, value)
    assert (positive >= 0).all()
    assert (negative >= 0).all()
    assert not (positive * negative).any()


def test_signed_columns_stand_as_positive_parts_then_negative_parts():
    assert ew.signed_channels(torch.tensor([[1.0, -2.0]])).tolist() == [[1, 0, 0, 2]]


@given(numbers=values, floor=st.floats(0, 0.9))
def test_min_max_keeps_the_order_between_floor_and_one(numbers, floor):
    value = column(numbers)
    scaled = ew.min_max_channels(value, floor=floor)[:, 0]
    assert scaled.min() >= floor
    assert scaled.max().item() == pytest.approx(1)
    order = torch.argsort(value, stable=True)
    assert (scaled[order].diff() >= -1e-12).all()


def test_min_max_by_hand():
    value = torch.tensor([[2.0, 7.0], [4.0, 7.0], [6.0, 7.0]])
    assert ew.min_max_channels(value).tolist() == [[0, 1], [0.5, 1], [1, 1]]
    assert ew.min_max_channels(value[:, 0], floor=0.5).tolist() == [[0.5], [0.75], [1.0]]
    low, high = torch.tensor([0.0]), torch.tensor([4.0])
    assert ew.min_max_channels(value[:, 0], low, high).tolist() == [[0.5], [1.0], [1.0]]
    assert ew.min_max_channels(value[:0]).shape == (0, 2)


def test_quantiles_are_ranks_and_ties_share_one():
    value = torch.tensor([1e9, 3.0, 3.0, -5.0])
    assert ew.quantile_channels(value).tolist() == [[1.0], [0.5], [0.5], [0.0]]
    assert ew.quantile_channels(value, floor=0.5).tolist() == [[1.0], [0.75], [0.75], [0.5]]
    assert ew.quantile_channels(value[:0]).shape == (0, 1)


@pytest.mark.parametrize(
    "function",
    [
        lambda index, attr: ew.directed_channels(index, attr)[1],
        lambda index, attr: ew.undirected_channels(index, attr)[1],
        lambda index, attr: ew.add_self_loops(index, attr, 5)[1],
        lambda _, attr: ew.signed_channels(attr - 0.4),
        lambda _, attr: ew.min_max_channels(attr),
    ],
)
def test_gradients_pass_and_arguments_stay(function, digraph):
    edge_index, edge_attr, _ = digraph
    edge_attr = (edge_attr + 0.1 * noise(*edge_attr.shape).abs() + 0.01).requires_grad_()
    index_before, attr_before = edge_index.clone(), edge_attr.detach().clone()
    assert torch.autograd.gradcheck(lambda attr: function(edge_index, attr), (edge_attr,))
    assert torch.equal(edge_index, index_before)
    assert torch.equal(edge_attr, attr_before)


@pytest.mark.parametrize(
    "function",
    [ew.directed_channels, ew.undirected_channels, lambda *edges: ew.add_self_loops(*edges, 3)],
)
@pytest.mark.parametrize(
    ("edge_index", "edge_attr", "sentence"),
    [
        (torch.tensor([0, 1]), None, r"expected \[2, edges\]"),
        (torch.tensor([[0.0], [1.0]]), None, r"expected integers"),
        (torch.tensor([[0], [-1]]), None, r"edge 0 joins nodes \(0, -1\)"),
        (torch.tensor([[0, 0], [1, 1]]), None, r"edges 0 and 1 both join nodes \(0, 1\)"),
        (torch.tensor([[0], [1]]), torch.ones(1), r"edge_attr\.unsqueeze\(1\)"),
        (torch.tensor([[0], [1]]), torch.ones(2, 1), r"\[1 edges, channels\]"),
        (torch.tensor([[0], [1]]), -torch.ones(1, 1), r"negative value -1"),
    ],
)
def test_edges_are_checked_by_every_function_that_takes_them(
    function, edge_index, edge_attr, sentence
):
    with pytest.raises(EdgewiseError, match=sentence):
        function(edge_index, edge_attr)


@pytest.mark.parametrize(
    "function", [ew.signed_channels, ew.min_max_channels, ew.quantile_channels]
)
@pytest.mark.parametrize("value", [torch.ones(2, 2, 2), torch.tensor([1, 2]), torch.tensor(1.0)])
def test_values_that_cannot_be_scaled_are_refused(function, value):
    with pytest.raises(EdgewiseError, match=r"cannot be scaled; give real numbers as \[edges\]"):
        function(value)


@pytest.mark.parametrize("fill", [0.0, -1.0, float("nan")])
def test_a_loop_without_weight_is_refused(fill):
    with pytest.raises(EdgewiseError, match=r"is none; give a positive fill"):
        ew.add_self_loops(torch.tensor([[0], [1]]), None, 2, fill=fill)


def test_a_graph_without_edges_stays_one():
    nothing = torch.empty(2, 0, dtype=torch.long)
    assert ew.directed_channels(nothing)[1].shape == (0, 3)
    assert ew.undirected_channels(nothing)[1].shape == (0, 1)
    assert ew.add_self_loops(nothing, None, 2)[0].tolist() == [[0, 1], [0, 1]]
