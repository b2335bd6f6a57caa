"""Three tables become many graphs, each as if it had been read alone, or are refused by row."""

import json

import numpy as np
import pytest
from torch.testing import assert_close

from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import make_settings
from edgewise.data.chemistry import read_smiles
from edgewise.data.graph_set_reader import load_graph_set_reader
from edgewise.data.graph_set_tables import GraphTables, PlacedGraphs
from edgewise.data.graph_tables import learn_graph_reader
from edgewise.data.molecule_rows import Molecules
from edgewise.data.tables import parse_text
from edgewise.graphs.edges import Edges

GRAPHS = """graph,y
u,0.5
v,1.5
w,
"""
# Nodes of a graph do not stand together, and ids stand in several graphs.
NODES = """graph,id,size,kind
u,a,1,x
v,a,2,y
u,b,3,y
w,a,4,x
v,c,5,x
v,b,6,y
"""
EDGES = """graph,source,target,amount,type
v,b,c,4,p
u,a,b,2,q
v,c,a,1,q
"""


def tables(graphs=GRAPHS, nodes=NODES, edges=EDGES, directed=True, **changes):
    texts = {"graphs.csv": graphs, "nodes.csv": nodes, "edges.csv": edges}
    parsed = [parse_text(text.encode(), name) for name, text in texts.items()]
    return GraphTables(*parsed, make_settings("graph", **changes).data, directed=directed)


def read(train=(0, 1, 2), **changes):
    names = ("graphs", "nodes", "edges", "directed")
    given = {name: changes.pop(name) for name in names if name in changes}
    placed, _ = tables(**given, **changes).structures()
    reader = placed.learn(np.array(train), make_settings("graph", **changes))
    return reader, *placed.packed(reader)


def rows_of(text, graph):
    """The rows of one graph, without the column that names it."""
    header, *rows = text.splitlines()
    kept = [row.partition(",")[2] for row in rows if row.startswith(f"{graph},")]
    return "\n".join([header.partition(",")[2], *kept]) + "\n"


@pytest.mark.parametrize("directed", [True, False])
def test_each_graph_is_what_its_own_two_tables_say(directed):
    reader, found, _ = read(directed=directed)
    assert found.ids == ("u", "v", "w")
    for number, name in enumerate(found.ids):
        texts = [rows_of(text, name).encode() for text in (NODES, EDGES)]
        alone = [parse_text(text, "alone.csv") for text in texts]
        graph, _ = reader.columns.read(*alone)
        batch = found.batch([number])
        assert_close(batch.x, graph.x)
        both = [
            {(*pair, *value) for pair, value in zip(i.T.tolist(), v.tolist(), strict=True)}
            for i, v in ((batch.edge_index, batch.edge_attr), (graph.edge_index, graph.channels))
        ]
        assert both[0] == both[1]


def test_columns_are_learnt_from_training_graphs_unless_all_are_asked_for():
    reader, found, _ = read(train=[0])
    size, kind = reader.columns.features
    assert (size.mean, kind.values) == (2.0, ("x", "y"))
    amount, word = reader.columns.channels
    assert (amount.largest, word.values) == (2.0, ("q",))
    assert found.batch([1]).edge_attr.tolist() == [[2, 0], [0.5, 1]]
    everything, _, _ = read(train=[0], fit_on="all")
    assert everything.columns.features[0].mean == 3.5
    whole = learn_graph_reader(
        *(parse_text(text.encode(), "t.csv") for text in (NODES.replace("v,a", "v,z"), EDGES)),
        id="size",
        ignore=["id", "graph"],
    )
    assert everything.columns.channels == whole.channels


def test_the_reader_is_saved_and_read_back(tmp_path):
    reader, found, _ = read()
    (tmp_path / "reader.json").write_text(json.dumps(reader.to_json()))
    again = load_graph_set_reader(tmp_path / "reader.json")
    assert again == reader
    other, _ = tables().structures()[0].packed(again)
    assert_close(other.edge_attr, found.edge_attr)


def test_edges_need_no_graph_where_nodes_have_ids_of_their_own():
    own = NODES.replace("v,a", "v,d").replace("v,b", "v,e").replace("w,a", "w,f")
    edges = "source,target,amount,type\ne,c,4,p\na,b,2,q\nc,d,1,q\n"
    _, found, _ = read(nodes=own, edges=edges)
    _, expected, _ = read()
    assert_close(found.edge_index, expected.edge_index)
    with pytest.raises(EdgewiseError, match=r"edges.csv has no column 'graph', and nodes of sev"):
        read(edges=edges)
    with pytest.raises(EdgewiseError, match=r"edges.csv:2: the edge from 'e' to 'a' joins the gra"):
        read(nodes=own, edges=edges.replace("e,c", "e,a"))
    with pytest.raises(EdgewiseError, match=r"edges.csv:2: the edge from 'q' to 'c' names 'q'"):
        read(nodes=own, edges=edges.replace("e,c", "q,c"))


def test_names_of_columns_are_settings():
    renamed = {
        "graphs": GRAPHS.replace("graph", "name"),
        "nodes": NODES.replace("graph,id", "of,name"),
        "edges": EDGES.replace("graph,source,target", "of,from,to"),
    }
    names = {
        "graph_column": "of",
        "id_column": "name",
        "source_column": "from",
        "destination_column": "to",
    }
    _, found, _ = read(**renamed, **names)
    assert_close(found.x, read()[1].x)
    assert tables(**renamed, **names).other_columns() == ["y"]


def test_repeated_edges_are_merged_within_their_graph_alone():
    edges = EDGES + "u,a,b,5,q\n"
    with pytest.raises(
        EdgewiseError, match=r"edges.csv:5: this edge stands already at edges.csv:3"
    ):
        read(edges=edges)
    _, found, notes = read(edges=edges, duplicates="sum")
    assert found.batch([0]).edge_attr.tolist() == [[pytest.approx(7 / 5), 0, 2]]
    assert "1 repeated edges merged" in notes[0]


def test_unknown_ends_are_dropped_on_request_and_told():
    _, found, notes = read(edges=EDGES + "u,a,c,1,q\nz,a,b,1,q\n", unknown="drop")
    assert_close(found.edge_index, read()[1].edge_index)
    assert "2 edges to unknown nodes dropped" in notes[0]


def test_graphs_without_edges_are_graphs():
    _, found, _ = read(edges="graph,source,target\n")
    assert found.batch([0, 1, 2]).edge_attr.shape == (0, 1)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"graphs": GRAPHS + "u,2\n"}, r"graphs.csv:5: the id 'u' stands already at graphs.csv:2"),
        ({"graphs": GRAPHS + ",2\n"}, r"graphs.csv:5: the graph has no id"),
        ({"graphs": GRAPHS + "q,2\n"}, r"graphs.csv:5: graph 'q' has no node in nodes.csv"),
        ({"graphs": "graph,y\n"}, r"graphs.csv has a header but no rows"),
        ({"graphs": "name,y\nu,1\n"}, r"graphs.csv has no column 'id'; its columns are"),
        ({"nodes": NODES + "q,a,1,x\n"}, r"nodes.csv:8: the node names the graph 'q', which is no"),
        ({"nodes": NODES + ",a,1,x\n"}, r"nodes.csv:8: the node names the graph ''"),
        ({"nodes": NODES + "v,,1,x\n"}, r"nodes.csv:8: the node has no id"),
        (
            {"nodes": NODES + "v,b,1,x\n"},
            r"nodes.csv:8: the id 'b' stands already in graph 'v' at ",
        ),
        ({"nodes": "graph,id\n"}, r"nodes.csv has a header but no rows"),
        ({"nodes": "id,size\na,1\n"}, r"nodes.csv has no column 'graph'"),
        ({"edges": EDGES + "u,a,c,1,p\n"}, r"edges.csv:5: the edge from 'a' to 'c' is one of grap"),
        ({"edges": EDGES + "u,a,c,1,p\n"}, r"graph 'u', but 'c' is a node of graph 'v'"),
        ({"edges": EDGES + "u,a,z,1,p\n"}, r"graph 'u', but 'z' is no node"),
        ({"edges": EDGES + "q,a,b,1,p\n"}, r"edges.csv:5: .* names the graph 'q', which is not in"),
        ({"edges": EDGES + "u,,b,1,p\n"}, r"edges.csv:5: the edge from '' to 'b'"),
        ({"edges": "graph,from,to\nu,a,b\n"}, r"edges.csv has no column 'source'"),
    ],
)
def test_what_does_not_fit_together_is_refused_by_file_and_row(changed, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        PlacedGraphs(tables(**changed))


def test_a_model_of_molecules_does_not_read_tables_nor_the_other_way_round():
    reader, _, _ = read()
    with pytest.raises(EdgewiseError, match="not trained on tables of graphs"):
        tables().structures()[0].packed(None)
    with pytest.raises(EdgewiseError, match="not trained on molecules"):
        Molecules(read_smiles(["CCO"])).packed(reader)


def test_a_node_or_edge_column_that_gives_the_target_away_is_told():
    draw = np.random.default_rng(0)
    count = 40
    graphs, nodes = ["graph,y"], ["graph,id,code,size"]
    for g in range(count):
        graphs.append(f"g{g},{g * 0.7:.2f}")
        nodes += [f"g{g},{i},{g * 1.4:.2f},{draw.normal():.3f}" for i in range(3)]
    edges = ["graph,source,target", *(f"g{g},0,1" for g in range(count))]
    texts = {"graphs": graphs, "nodes": nodes, "edges": edges}
    given = {name: "\n".join(lines) + "\n" for name, lines in texts.items()}
    placed, _ = tables(**given).structures()
    reader = placed.learn(np.arange(count), make_settings("graph"))
    (notice,) = placed.notices(reader, {"y": np.arange(count) * 0.7}, {})
    assert "'code' is a monotone image of the target 'y' of its graph" in notice


def test_direction_is_encoded_once_for_the_set_as_it_is_for_each_batch():
    _, found, _ = read()
    for direction in ("directed", "sum", "max"):
        batch = found.batch([2, 0, 1])
        fast = batch.edges.encoded(direction)
        expected = Edges(batch.edge_index, batch.edge_attr, len(batch.x)).encoded(direction)
        order = [
            (edges.edge_index[0] * 100 + edges.edge_index[1]).argsort()
            for edges in (fast, expected)
        ]
        assert_close(fast.edge_index[:, order[0]], expected.edge_index[:, order[1]])
        assert_close(fast.edge_attr[order[0]], expected.edge_attr[order[1]])
