"""A graph goes to disk and comes back, without pickle."""

import networkx
import pytest
import torch
from safetensors.torch import save_file
from torch_geometric.data import Data

from edgewise import Graph, from_pyg, to_pyg
from edgewise.core.errors import EdgewiseError
from edgewise.data.graph_files import (
    load_graph,
    read_folder,
    read_graphml,
    save_graph,
    tables_from_networkx,
)
from edgewise.data.graph_tables import learn_graph_reader


@pytest.fixture
def graph():
    return Graph(
        x=torch.eye(3),
        edge_index=torch.tensor([[0, 1], [1, 2]]),
        edge_attr=torch.tensor([[1.0, 0.0], [0.5, 2.0]]),
        y=torch.tensor([0, 1, -1]),
        node_ids=("a", "b", "ü"),
        channel_names=("pays", "owns"),
        class_names=("no", "yes"),
    )


def test_a_graph_comes_back_with_its_names(graph, tmp_path):
    save_graph(graph, tmp_path / "g.safetensors")
    again = load_graph(tmp_path / "g.safetensors")
    for name, value in vars(graph).items():
        found = getattr(again, name)
        assert torch.equal(found, value) if isinstance(value, torch.Tensor) else found == value


def test_pyg_data_goes_to_disk_and_back(tmp_path):
    data = Data(
        x=torch.rand(3, 2), edge_index=torch.tensor([[0, 2], [1, 0]]), y=torch.tensor([0, 1, 1])
    )
    save_graph(from_pyg(data), tmp_path / "g.safetensors")
    again = to_pyg(load_graph(tmp_path / "g.safetensors"))
    assert torch.equal(again.x, data.x)
    assert torch.equal(again.edge_index, data.edge_index)
    assert torch.equal(again.y, data.y)


def test_a_pickle_is_never_opened(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was opened",))

    torch.save(Bomb(), tmp_path / "data.pt")
    with pytest.raises(EdgewiseError, match=r"data\.pt is a pickle.*save_graph"):
        load_graph(tmp_path / "data.pt")


def test_a_broken_or_foreign_file_is_a_sentence(graph, tmp_path):
    path = tmp_path / "g.safetensors"
    save_graph(graph, path)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(EdgewiseError, match="is not a whole safetensors file"):
        load_graph(path)
    save_file({"weight": torch.ones(2)}, path)
    with pytest.raises(EdgewiseError, match=r"has no tensor x and no edge_index, only \[weight\]"):
        load_graph(path)
    save_file({"x": torch.eye(2), "edge_index": torch.tensor([[0], [7]])}, path)
    with pytest.raises(EdgewiseError, match=r"g\.safetensors: edge 0 joins nodes \(0, 7\)"):
        load_graph(path)


def test_networkx_attributes_become_columns():
    source = networkx.DiGraph()
    source.add_node("a", age=3, kind="x")
    source.add_node("b", age=5, kind="y")
    source.add_edge("b", "a", weight=2.0)
    nodes, edges = tables_from_networkx(source)
    reader = learn_graph_reader(nodes, edges, label="kind")
    graph, _ = reader.read(nodes, edges)
    assert graph.edge_index.tolist() == [[1], [0]]
    assert graph.class_names == ("x", "y")


def test_graphml_keeps_its_direction(tmp_path):
    for kind, expected in ((networkx.DiGraph, {(1, 0)}), (networkx.Graph, {(1, 0), (0, 1)})):
        source = kind()
        source.add_nodes_from(["a", "b"], age=1.5)
        source.add_edge("b", "a", weight=2.0)
        networkx.write_graphml(source, tmp_path / "g.graphml", named_key_ids=True)
        nodes, edges, directed = read_graphml(tmp_path / "g.graphml")
        graph, _ = learn_graph_reader(nodes, edges, directed=directed).read(nodes, edges)
        assert set(map(tuple, graph.edge_index.T.tolist())) == expected


@pytest.mark.parametrize("content", ["", "<graphml", "<html></html>", "not xml"])
def test_a_file_that_is_not_graphml_is_a_sentence(tmp_path, content):
    (tmp_path / "g.graphml").write_text(content)
    with pytest.raises(EdgewiseError, match="is not GraphML"):
        read_graphml(tmp_path / "g.graphml")


def test_a_folder_needs_one_table_of_each(tmp_path):
    (tmp_path / "nodes.csv").write_text("id\na\n")
    with pytest.raises(EdgewiseError, match=r"holds no edges table; put one edges\.csv"):
        read_folder(tmp_path)
    (tmp_path / "edges.tsv").write_text("source\ttarget\na\ta\n")
    nodes, edges = read_folder(tmp_path)
    assert (len(nodes), len(edges)) == (1, 1)
    (tmp_path / "nodes.tsv").write_text("id\na\n")
    with pytest.raises(EdgewiseError, match=r"holds \[nodes\.csv, nodes\.tsv\]; put one"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("tensors", "sentence"),
    [
        ({"y": torch.tensor([0, 1, 2_000_000_000])}, r"a class 2,000,000,000, but there are 3 no"),
        ({"x": torch.ones(0, 2), "edge_index": torch.zeros(2, 0).long()}, "holds no nodes"),
    ],
)
def test_a_graph_that_would_fill_the_memory_or_holds_nothing_is_refused(
    tmp_path, tensors, sentence
):
    from safetensors.torch import save_file

    given = {"x": torch.ones(3, 1), "edge_index": torch.tensor([[0], [1]]), **tensors}
    save_file(given, tmp_path / "g.safetensors")
    with pytest.raises(EdgewiseError, match=sentence):
        load_graph(tmp_path / "g.safetensors")


GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{}</graphml>'


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            '<?xml version="1.0"?>\n<!DOCTYPE g [<!ENTITY a "aaa">]>\n' + GRAPHML.format("&a;"),
            r"g\.graphml:2: the document type 'g' may declare entities.*remove the DOCTYPE",
        ),
        (GRAPHML.format("<graph>" * 10_000 + "</graph>" * 10_000), "nested deeper than 50"),
        (GRAPHML.format("<graph>"), "is not GraphML"),
        ('<?xml version="1.0" encoding="utp-8"?><graphml/>', "unknown encoding"),
    ],
)
def test_graphml_that_attacks_or_is_none_is_a_sentence(tmp_path, content, sentence):
    (tmp_path / "g.graphml").write_text(content)
    with pytest.raises(EdgewiseError, match=sentence):
        read_graphml(tmp_path / "g.graphml")


def test_graphml_beyond_memory_is_refused_before_it_is_a_graph(tmp_path, monkeypatch):
    nodes = "".join(f'<node id="{i}"/>' for i in range(5000))
    content = GRAPHML.format(f'<graph edgedefault="directed">{nodes}</graph>')
    (tmp_path / "g.graphml").write_text(content)
    assert len(read_graphml(tmp_path / "g.graphml")[0]) == 5000
    monkeypatch.setattr("edgewise.data.graph_files.memory_limit", lambda: 2**20)
    with pytest.raises(EdgewiseError, match="would not fit into memory; export it as two CSV"):
        read_graphml(tmp_path / "g.graphml")
