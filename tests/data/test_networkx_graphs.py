"""NetworkX graphs and folders of GraphML files become the tables that they could have been."""

import networkx
import pytest
import torch

from edgewise.core.declarations import DataSettings
from edgewise.core.errors import EdgewiseError
from edgewise.data.networkx_graphs import tables_of_graphs
from edgewise.data.sources import find_source
from edgewise.units.base import resolve


def shapes(count=8):
    graphs = []
    for number in range(count):
        kind = (networkx.path_graph, networkx.cycle_graph)[number % 2]
        graph = kind(number + 3)
        graph.graph["y"] = number + 0.5
        for node in graph.nodes:
            graph.nodes[node].update(mass=float(node % 3), kind="ab"[node % 2])
        for a, b in graph.edges:
            graph.edges[a, b]["length"] = float(a + b)
        graphs.append(graph)
    return graphs


def opened(folder, **given):
    source = find_source([str(folder)])
    unit, settings = resolve(source, "default", given)
    return source, unit.open(source, settings)


def written(folder, graphs, **named):
    folder.mkdir()
    for number, graph in enumerate(graphs):
        networkx.write_graphml(graph, folder / f"g{number}.graphml", **named)
    return folder


def test_a_folder_of_graphml_files_is_a_set_of_graphs_with_their_attributes(tmp_path):
    graphs = shapes()
    source, found = opened(written(tmp_path / "shapes", graphs))
    assert (source.form, source.name) == ("graphml folder", "shapes")
    assert "predicting column 'y', the only one beside the names of graphs" in found.notes
    data = found.problem.data
    assert data.ids == tuple(f"g{number}" for number in range(8))
    assert found.problem.truth[:, 0].tolist() == [number + 0.5 for number in range(8)]
    for number, graph in enumerate(graphs):
        batch = data.batch([number])
        assert len(batch.x) == graph.number_of_nodes()
        assert batch.edge_index.size(1) == 2 * graph.number_of_edges()  # undirected
    assert data.channel_names == ("length",)


def test_a_table_beside_the_files_holds_the_targets(tmp_path):
    folder = written(tmp_path / "shapes", shapes(), named_key_ids=True)
    rows = [f"g{number},{'xy'[number % 2]}" for number in range(7, -1, -1)]
    (folder / "graphs.csv").write_text("\n".join(["id,side", *rows, ""]))
    source, found = opened(folder)
    assert len(source.files()) == 9
    assert found.problem.data.ids[0] == "g7"
    assert found.problem.truth.tolist() == [1, 0] * 4
    (folder / "graphs.csv").write_text("\n".join(["id,side", *rows[1:], ""]))
    with pytest.raises(
        EdgewiseError, match=r"names the graph 'g7', which is not in column 'id' of"
    ):
        opened(folder)


def test_attributes_of_undirected_graphs_are_read_as_tables_are():
    graphs = shapes(3)
    settings = DataSettings()
    tables = tables_of_graphs(graphs, ["u", "v", "w"], settings)
    assert not tables.directed
    assert list(tables.graphs.columns) == ["graph", "y"]
    assert list(tables.nodes.columns) == ["graph", "id", "mass", "kind"]
    assert list(tables.edges.columns) == ["graph", "source", "target", "length"]
    placed, _ = tables.structures()
    assert placed.ids == ("u", "v", "w")
    assert torch.tensor(placed.node_offset).diff().tolist() == [3, 4, 5]


def test_what_would_be_mixed_up_is_refused():
    mixed = [networkx.path_graph(3), networkx.path_graph(3, networkx.DiGraph)]
    with pytest.raises(EdgewiseError, match="not both directed or both undirected"):
        tables_of_graphs(mixed, ["u", "v"], DataSettings())
    graph = networkx.path_graph(3)
    graph.nodes[0]["graph"] = "other"
    with pytest.raises(EdgewiseError, match="u: an attribute is called 'graph'"):
        tables_of_graphs([graph], ["u"], DataSettings())
