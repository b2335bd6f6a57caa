"""What goes out to PyG, NetworkX and SciPy comes back the same."""

import sys

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from drawn import graphs, noise
from hypothesis import given
from torch.testing import assert_close
from torch_geometric.data import Data

import edgewise as ew
from edgewise.core.errors import EdgewiseError


def as_graph(drawn):
    y = torch.arange(drawn.num_nodes) % 3
    return ew.Graph(noise(drawn.num_nodes, 2), drawn.edge_index, drawn.edge_attr, y)


def dense(graph):
    out = graph.channels.new_zeros(graph.num_nodes, graph.num_nodes, graph.num_channels)
    return out.index_put(tuple(graph.edge_index), graph.channels)


@given(drawn=graphs())
def test_pyg_and_back_is_the_same_graph(drawn):
    graph = as_graph(drawn)
    back = ew.from_pyg(ew.to_pyg(graph))
    for name in ("x", "edge_index", "edge_attr", "y"):
        assert torch.equal(getattr(back, name), getattr(graph, name))


@given(drawn=graphs())
def test_scipy_and_back_has_the_same_weights(drawn):
    graph = as_graph(drawn)
    matrices = ew.to_scipy(graph)
    assert len(matrices) == graph.num_channels
    for p, matrix in enumerate(matrices):
        assert (matrix.data != 0).all()
        assert np.array_equal(matrix.toarray(), dense(graph)[:, :, p].numpy())
    back = ew.from_scipy(matrices, graph.x, y=graph.y)
    assert_close(dense(back), dense(graph))
    assert torch.equal(back.y, graph.y)


@given(drawn=graphs())
def test_networkx_and_back_is_the_same_graph(drawn):
    graph = as_graph(drawn)
    names = [f"channel_{p}" for p in range(graph.num_channels)]
    out = ew.to_networkx(graph)
    assert isinstance(out, networkx.DiGraph)
    back = ew.from_networkx(out, features=["x"], channels=names, label="y")
    assert_close(back.x, graph.x.float())
    assert_close(dense(back), dense(graph).float())
    assert back.node_ids == tuple(str(i) for i in range(graph.num_nodes))
    assert [back.class_names[k] for k in back.y] == [str(k) for k in graph.y.tolist()]


def test_direction_survives_in_every_form():
    graph = ew.Graph(torch.eye(2), torch.tensor([[0], [1]]))
    assert ew.to_pyg(graph).edge_index.tolist() == [[0], [1]]
    assert list(ew.to_networkx(graph).edges) == [(0, 1)]
    assert ew.to_scipy(graph)[0].toarray().tolist() == [[0, 1], [0, 0]]


def test_pyg_s_single_numbers_and_edge_weights_become_one_channel():
    edges = torch.tensor([[0, 1], [1, 0]])
    for name in ("edge_attr", "edge_weight"):
        graph = ew.from_pyg(Data(x=torch.eye(2), edge_index=edges, **{name: torch.tensor([2, 3])}))
        assert graph.edge_attr.tolist() == [[2.0], [3.0]]
    assert ew.from_pyg(Data(x=torch.eye(2), edge_index=edges)).edge_attr.tolist() == [[1.0], [1.0]]


def test_pyg_data_without_features_is_refused_with_a_cure():
    with pytest.raises(EdgewiseError, match=r"has no x; give its nodes features"):
        ew.from_pyg(Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2))


def test_an_undirected_networkx_edge_becomes_two_and_names_are_kept():
    source = networkx.Graph()
    source.add_node("ann", age=30, kind="person")
    source.add_node("bob", age=40)
    source.add_edge("ann", "bob", weight=2.5)
    graph = ew.from_networkx(source, features=["age"], channels=["weight", "trust"], label="kind")
    assert graph.x.tolist() == [[30.0], [40.0]]
    assert sorted(map(tuple, graph.edge_index.T.tolist())) == [(0, 1), (1, 0)]
    assert graph.edge_attr.tolist() == [[2.5, 0.0], [2.5, 0.0]]  # no trust: no edge there
    assert graph.y.tolist() == [0, -1]
    assert (graph.node_ids, graph.channel_names) == (("ann", "bob"), ("weight", "trust"))
    assert graph.class_names == ("person",)


def test_gaps_in_networkx_labels_are_unknown_not_a_class():
    source = networkx.DiGraph()
    kinds = ["a", float("nan"), None, np.nan, "b", float("nan")]
    for node, kind in enumerate(kinds):
        source.add_node(node, kind=kind)
    graph = ew.from_networkx(source, label="kind")
    assert (graph.y.tolist(), graph.class_names) == ([0, -1, -1, -1, 1, -1], ("a", "b"))


def test_networkx_features_may_be_arrays_side_by_side_with_numbers():
    source = networkx.DiGraph()
    source.add_node(0, v=np.array([1.0, 2.0]), w=3)
    source.add_node(1, v=[4.0, 5.0], w=6)
    assert ew.from_networkx(source, features=["v", "w"]).x.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("nodes", [0, 3])
def test_a_networkx_graph_without_edges_is_read(nodes):
    graph = ew.from_networkx(networkx.empty_graph(nodes), channels=["a", "b"])
    assert (graph.num_nodes, graph.num_edges, graph.num_channels) == (nodes, 0, 2)
    assert graph.x.shape == (nodes, 1)


def path(**attributes):
    source = networkx.path_graph(3)
    for node, value in attributes.get("nodes", {}).items():
        source.nodes[node]["x"] = value
    for edge, value in attributes.get("edges", {}).items():
        source.edges[edge]["w"] = value
    return source


@pytest.mark.parametrize(
    ("source", "options", "sentence"),
    [
        (networkx.MultiGraph([(0, 1), (0, 1)]), {}, r"multigraph joins two nodes more than once"),
        (path(), {"features": ["x"]}, r"node 0 has no attribute 'x'; give it one"),
        (
            path(nodes={0: 1, 1: "red", 2: 3}),
            {"features": ["x"]},
            r"attribute 'x' of node 1 is 'red', which is no number",
        ),
        (
            path(nodes={0: [1, 2], 1: [1], 2: [1, 2]}),
            {"features": ["x"]},
            r"node 1 has 1 features, but node 0 has 2",
        ),
        (
            path(edges={(0, 1): "pays"}),
            {"channels": ["w"]},
            r"edge 0 -> 1 is \['pays'\], which is no number.*one_hot_channels",
        ),
        (path(edges={(1, 2): -1.0}), {"channels": ["w"]}, r"negative value -1 in channel 0"),
    ],
)
def test_what_networkx_allows_and_we_do_not_is_refused_with_its_place(source, options, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        ew.from_networkx(source, **options)


def test_one_scipy_matrix_is_one_channel_and_channels_share_edges():
    first = scipy.sparse.csr_array(np.array([[0, 2], [0, 0]]))
    second = scipy.sparse.coo_array(np.array([[0, 3], [4, 0]]))
    assert ew.from_scipy(first, torch.eye(2)).edge_attr.tolist() == [[2.0]]
    graph = ew.from_scipy([first, second], torch.eye(2))
    assert graph.edge_index.tolist() == [[0, 1], [1, 0]]
    assert graph.edge_attr.tolist() == [[2.0, 3.0], [0.0, 4.0]]


def test_scipy_matrices_of_a_wrong_shape_are_refused():
    with pytest.raises(EdgewiseError, match=r"adjacency matrix 0 is \[3, 3\], but x has 2 nodes"):
        ew.from_scipy(scipy.sparse.csr_array((3, 3)), torch.eye(2))
    with pytest.raises(EdgewiseError, match=r"no adjacency matrix was given"):
        ew.from_scipy([], torch.eye(2))


@pytest.mark.parametrize(
    ("module", "convert"),
    [("torch_geometric.data", ew.to_pyg), ("networkx", ew.to_networkx)],
)
def test_a_package_that_is_not_there_is_named_with_its_extra(module, convert, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(EdgewiseError, match=r"not installed; run: pip install 'edgewise\["):
        convert(ew.Graph(torch.eye(2), torch.tensor([[0], [1]])))
