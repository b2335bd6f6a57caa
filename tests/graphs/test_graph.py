"""A graph is checked when it is made; what is wrong is said once, with the place and the cure."""

from dataclasses import FrozenInstanceError

import pytest
import torch

import edgewise as ew
from edgewise.core.errors import EdgewiseError, missing_extra, preview

X = torch.eye(3)
EDGES = torch.tensor([[0, 1, 2], [1, 2, 0]])
NAN, INF = float("nan"), float("inf")


def attr(*values):
    return torch.tensor(values).reshape(-1, 1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        # Repeated edges.
        (
            {"edge_index": torch.tensor([[0, 1, 0], [1, 2, 1]])},
            r"edges 0 and 2 both join nodes \(0, 1\); merge the 1 repeated edge\(s\) first",
        ),
        # Values that are no weights.
        ({"edge_attr": attr(1.0, NAN, 2.0)}, r"edge 1 has the value nan in channel 0; 1 such"),
        ({"edge_attr": attr(INF, INF, 2.0)}, r"edge 0 has the value inf in channel 0; 2 such"),
        (
            {"edge_attr": attr(1.0, 1.0, -2.5)},
            r"edge 2 has the negative value -2.5 in channel 0; split .*edgewise\.signed_channels",
        ),
        # Node ids out of range.
        (
            {"edge_index": torch.tensor([[0, 1], [1, 3]])},
            r"edge 1 joins nodes \(1, 3\), but the nodes are numbered 0 to 2; 1 such edge\(s\)",
        ),
        ({"edge_index": torch.tensor([[-1], [0]])}, r"edge 0 joins nodes \(-1, 0\)"),
        # Wrong shapes and types.
        ({"edge_index": EDGES.T}, r"int64\[3, 3\]|edge_index is int64\[3, 2\], .*edge_index\.T"),
        ({"edge_index": torch.tensor([0, 1])}, r"edge_index is int64\[2\], expected \[2, edges\]"),
        ({"edge_index": EDGES.float()}, r"edge_index is float32\[2, 3\], .*edge_index\.long\(\)"),
        ({"x": torch.ones(3)}, r"x is float32\[3\], expected .*x\.unsqueeze\(1\)"),
        ({"x": torch.eye(3).long()}, r"x is int64\[3, 3\], expected real numbers.*x\.float\(\)"),
        ({"x": torch.full((3, 2), NAN)}, r"x has NaN or infinite .* node\(s\) \[0, 1, 2\]; fill"),
        ({"edge_attr": torch.ones(3)}, r"edge_attr is float32\[3\], .*edge_attr\.unsqueeze\(1\)"),
        ({"edge_attr": torch.ones(2, 1)}, r"expected real numbers of shape \[3 edges, channels\]"),
        ({"edge_attr": torch.ones(3, 1).long()}, r"edge_attr is int64\[3, 1\], expected real"),
        ({"edge_attr": torch.ones(3, 0)}, r"edge_attr has no channel; leave it out for one"),
        # Labels and names.
        ({"y": torch.tensor([0, 1])}, r"y is int64\[2\], but there are 3 nodes; .*-1 \(or NaN"),
        ({"y": torch.tensor(1)}, r"y is int64\[\], but there are 3 nodes"),
        ({"y": torch.ones(3, 1)}, r"y is float32\[3, 1\], .* one label per node \(\[3\]\)"),
        ({"y": torch.ones(3).int()}, r"y is int32\[3\]; give class numbers as y\.long\(\)"),
        ({"y": torch.tensor([0, -2, 1])}, r"y runs from -2 to 1; number the classes from 0"),
        (
            {"y": torch.tensor([0, 1, 2]), "class_names": ("a", "b")},
            r"y runs from 0 to 2 for 2 class names",
        ),
        ({"node_ids": ("a", "b")}, r"node_ids has 2 names for 3 nodes; give one each"),
        ({"node_ids": ("a", "b", "a")}, r"node id\(s\) \[a\] stand twice; give each"),
        ({"channel_names": ("a", "b")}, r"channel_names has 2 names for 1 channels"),
    ],
)
def test_each_mistake_is_named_with_its_place_and_its_cure(arguments, sentence):
    with pytest.raises(EdgewiseError, match=sentence) as raised:
        ew.Graph(**{"x": X, "edge_index": EDGES, **arguments})
    assert "\n" not in str(raised.value)


def test_edges_without_values_are_one_channel_of_ones():
    graph = ew.Graph(X.double(), EDGES)
    assert torch.equal(graph.edge_attr, torch.ones(3, 1, dtype=torch.float64))
    assert graph.channels is graph.edge_attr


def test_the_record_tells_its_sizes():
    graph = ew.Graph(X, EDGES, torch.ones(3, 4), torch.tensor([0, 1, -1]), class_names=("a", "b"))
    assert repr(graph) == "Graph(nodes=3, edges=3, channels=4, features=3, classes=2)"
    assert (graph.num_nodes, graph.num_edges, graph.num_channels, graph.num_features) == (
        3,
        3,
        4,
        3,
    )


def test_a_graph_cannot_be_changed():
    graph = ew.Graph(X, EDGES)
    with pytest.raises(FrozenInstanceError):
        graph.x = torch.ones(2, 2)


def test_unknown_labels_are_allowed_as_minus_one_or_nan():
    assert ew.Graph(X, EDGES, y=torch.tensor([-1, 0, 1])).y[0] == -1
    assert ew.Graph(X, EDGES, y=torch.tensor([NAN, 0.5, -3.0])).y.isnan()[0]


@pytest.mark.parametrize("nodes", [0, 1, 4])
def test_a_graph_without_edges_is_a_graph(nodes):
    graph = ew.Graph(torch.ones(nodes, 2), torch.empty(2, 0, dtype=torch.long))
    assert (graph.num_nodes, graph.num_edges, graph.num_channels) == (nodes, 0, 1)


def test_a_reversed_edge_and_a_self_loop_are_no_repetition():
    assert ew.Graph(X, torch.tensor([[0, 1, 1], [1, 0, 1]])).num_edges == 3


def test_edges_numbered_in_32_bits_are_edges():
    assert ew.Graph(X, EDGES.int()).num_edges == 3


def test_a_preview_shows_a_few_and_counts_the_rest():
    assert preview([3, 8]) == "[3, 8]"
    assert preview(list(range(112))) == "[0, 1, 2, 3, 4, ... 112 in all]"
    assert preview([]) == "[]"


def test_a_missing_package_is_named_with_the_command_that_brings_it():
    sentence = str(missing_extra("rdkit", "molecules", "reading SMILES"))
    assert sentence == (
        "reading SMILES needs the package rdkit, which is not installed; "
        "run: pip install 'edgewise[molecules]'"
    )
