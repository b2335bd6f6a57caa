"""Two tables become a graph, and new tables are read as the first ones were."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from edgewise.core.errors import EdgewiseError
from edgewise.data.graph_reader import load_graph_reader
from edgewise.data.graph_tables import learn_graph_reader
from edgewise.data.tables import parse_text

NODES = """id,age,city,about,label
a,30,Rome,"graphs, and red wine and more",yes
b,40,Oslo,the quick brown fox jumps,no
c,50,Rome,graphs are made of red edges,
"""
EDGES = """source,target,amount,kind
a,b,10,pays
b,c,-5,owns
c,a,,pays
"""


def table(text: str, name: str):
    return parse_text(text.encode(), name)


def both(nodes: str = NODES, edges: str = EDGES):
    return table(nodes, "nodes.csv"), table(edges, "edges.csv")


def learnt(nodes: str = NODES, edges: str = EDGES, **options):
    tables = both(nodes, edges)
    reader = learn_graph_reader(*tables, **{"label": "label", **options})
    return reader, *reader.read(*tables)


def test_columns_are_read_as_what_they_look_like():
    reader, graph, notes = learnt()
    assert [type(c).__name__ for c in reader.features] == ["Numbers", "Categories", "Text"]
    assert reader.channel_names == ("amount +", "amount -", "kind=owns", "kind=pays")
    assert graph.node_ids == ("a", "b", "c")
    assert graph.class_names == ("no", "yes")
    assert graph.y.tolist() == [1, 0, -1]
    assert graph.edge_index.tolist() == [[0, 1, 2], [1, 2, 0]]
    assert graph.edge_attr.tolist() == [[1, 0, 0, 1], [0, 0.5, 1, 0], [0, 0, 0, 1]]
    assert (notes.unlabelled, notes.unseen) == (1, {"amount": 1})


def test_a_column_that_is_constant_but_for_rounding_stays_small():
    nodes = "id,size,label\na,0.1,x\nb,0.1,y\nc,0.1,x\n"
    reader, graph, _ = learnt(nodes)
    assert graph.x.abs().max() < 1e-6
    other, _ = reader.read(*both(nodes.replace("0.1", "0.2")))
    assert_close(other.x, torch.full((3, 1), 0.1))


def test_a_class_that_is_spelled_in_two_ways_is_named():
    with pytest.raises(EdgewiseError, match=r"spells a number in two ways.*\[0, 1, 1\.0\]"):
        learnt("id,label\na,0\nb,1\nc,1.0\n")


def test_edges_that_all_miss_their_nodes_are_named_even_if_such_edges_are_dropped():
    nodes, edges = "id,label\n1,x\n2,y\n", "source,target\n1.0,2.0\n"
    with pytest.raises(EdgewiseError, match=r"no edge .* such as '1\.0', .* such as '1'; write"):
        learnt(nodes, edges, unknown="drop")


def test_gaps_in_a_text_are_not_words():
    about = "about\na,graphs and red wine and more,x\nb,None,y\nc,the quick brown fox jumps,x\n"
    reader, graph, notes = learnt(f"id,{about}".replace("about", "about,label", 1), text=["about"])
    assert "about:none" not in reader.feature_names
    assert notes.unseen["about"] == 1
    assert not graph.x[1].any()


def test_numbers_are_scaled_and_categories_one_hot():
    _, graph, _ = learnt()
    assert_close(
        graph.x[:, 0], torch.tensor([-1.5, 0, 1.5]) / torch.tensor(1.5).pow(2).mul(2 / 3).sqrt()
    )
    assert graph.x[:, 1:3].tolist() == [[0, 1], [1, 0], [0, 1]]


def test_text_is_the_tf_idf_of_scikit_learn():
    from sklearn.feature_extraction.text import TfidfVectorizer

    reader, graph, _ = learnt()
    cells = both()[0].column("about")
    expected = TfidfVectorizer().fit_transform(cells).toarray().astype(np.float32)
    assert_close(graph.x[:, 3:], torch.from_numpy(expected))
    assert reader.feature_names[3] == "about:and"


def test_a_reader_from_its_file_reads_new_tables_the_same_way(tmp_path):
    reader, _, _ = learnt(missing="mean")
    reader.save(tmp_path / "reader.json")
    again = load_graph_reader(tmp_path / "reader.json")
    assert again == reader
    new = both(
        "id,age,city,about\nz,40,Bern,red unicorns\ny,,Rome,fox\n",
        "source,target,amount,kind\nz,y,20,lends\n",
    )
    graph, notes = again.read(*new)
    assert graph.x[:, :3].tolist() == [[0, 0, 0], [0, 0, 1]]
    assert graph.edge_attr.tolist() == [[2, 0, 0, 0]]
    assert graph.y.tolist() == [-1, -1]
    assert notes.unseen == {"age": 1, "city": 1, "kind": 1}


def test_an_undirected_edge_goes_both_ways_and_a_loop_once():
    _, graph, _ = learnt(edges="source,target,w\na,b,2\nc,c,1\n", directed=False)
    assert graph.edge_index.tolist() == [[0, 2, 1], [1, 2, 0]]
    assert graph.edge_attr.tolist() == [[1], [0.5], [1]]


def test_without_columns_there_is_one_feature_and_one_channel():
    _, graph, _ = learnt("id\na\nb\n", "source,target\na,b\n", label=None)
    assert graph.x.tolist() == [[1], [1]]
    assert graph.edge_attr.tolist() == [[1]]
    assert graph.y is None


def test_a_graph_may_have_no_edges():
    _, graph, _ = learnt(edges="source,target\n")
    assert graph.num_edges == 0


@pytest.mark.parametrize(("merge", "expected"), [("sum", [1.0, 4.0]), ("max", [1.0, 3.0])])
def test_repeated_edges_are_merged_when_told(merge, expected):
    edges = "source,target,w\nb,c,1\na,b,1\na,b,3\n"
    _, graph, notes = learnt(edges=edges, duplicates=merge)
    assert_close(graph.edge_attr[:, 0] * 3, torch.tensor(expected))
    assert graph.edge_index.tolist() == [[1, 0], [2, 1]]
    assert notes.merged_edges == 1


def test_edges_to_unknown_nodes_are_dropped_when_told():
    _, graph, notes = learnt(edges="source,target\na,b\na,nobody\n", unknown="drop")
    assert graph.num_edges == 1
    assert notes.dropped_edges == 1


@pytest.mark.parametrize("column", ["3\n1\n2\n", "1.0\n2.0\n2.0\n"])
def test_few_whole_numbers_are_classes_in_their_order(column):
    rows = column.split()
    _, graph, _ = learnt(
        "id,label\n" + "".join(f"{i},{v}\n" for i, v in zip("abc", rows, strict=True))
    )
    assert list(graph.class_names) == sorted(set(rows))


def test_a_label_column_full_of_numbers_must_be_told():
    nodes = "id,label\na,1.5\nb,2.25\nc,\n"
    with pytest.raises(
        EdgewiseError, match=r"'label' holds 2 different numbers.*task = regression"
    ):
        learnt(nodes)
    _, graph, notes = learnt(nodes, task="regression")
    assert graph.y[:2].tolist() == [1.5, 2.25]
    assert graph.y[2].isnan()
    assert notes.unlabelled == 1
    assert learnt(nodes, task="classification")[1].class_names == ("1.5", "2.25")


MANY_NAMES = "id,name\n" + "".join(f"n{i},person{i}\n" for i in range(150))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"nodes": "id,label\na,x\na,y\n"},
            r"nodes\.csv:3: the id 'a' stands already at nodes\.csv:2",
        ),
        ({"nodes": "id,label\n ,x\nb,y\n"}, r"nodes\.csv:2: the node has no id"),
        ({"nodes": "id,label\n", "label": None}, "has a header but no rows"),
        (
            {"edges": "source,target\na,b\na,ghost\n"},
            r"edges\.csv:3: .* names 'ghost', which is not in column 'id' of nodes\.csv.*drop",
        ),
        (
            {"edges": "source,target\na,b\nb,c\na,b\n"},
            r"edges\.csv:4: this edge stands already at edges\.csv:2.*--duplicates sum",
        ),
        (
            {"edges": "source,target\na,b\nb,a\n", "directed": False},
            r"stands already at",
        ),
        ({"edges": "from,to\na,b\n"}, r"no column 'source'; its columns are \[from, to\]"),
        ({"label": "klass"}, r"nodes\.csv has no column 'klass'"),
        ({"nodes": "id,label\na,\nb,\n"}, "label column 'label' is empty"),
        ({"nodes": "id,label\na,x\nb,x\n"}, "one class only, 'x'"),
        (
            {"nodes": "id,age,label\na,1,x\nb,,y\nc,2,x\n"},
            r"nodes\.csv:3: column 'age' is empty.*mean",
        ),
        ({"nodes": MANY_NAMES, "label": None}, r"'name' holds 150 different words.*say how"),
        ({"numbers": ["city"]}, r"nodes\.csv:2: column 'city' holds 'Rome', expected a number"),
        ({"ignore": ["ages"]}, r"column\(s\) \[ages\] are in neither table"),
        ({"edges": "source,target,why\na,b,because it is so\n"}, "text, which makes no channel"),
        ({"missing": "zero"}, "missing='zero' is not known; choose one of error, mean"),
        ({"task": "sorting"}, "task='sorting' is not known"),
    ],
)
def test_a_mistake_is_a_sentence_with_place_and_cure(change, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        learnt(**change)


def test_a_new_label_and_a_new_sign_are_refused():
    reader, _, _ = learnt(edges="source,target,w\na,b,2\n")
    nodes, edges = both(edges="source,target,w\na,b,-2\n")
    with pytest.raises(EdgewiseError, match=r"edges\.csv:2: column 'w' is negative"):
        reader.read(nodes, edges)
    strange, edges = both(NODES.replace("no\n", "maybe\n"), "source,target,w\n")
    with pytest.raises(EdgewiseError, match=r"nodes\.csv:3: the label 'maybe' is not among"):
        reader.read(strange, edges)


def test_columns_are_learnt_from_the_training_rows_alone():
    nodes, edges = both()
    reader = learn_graph_reader(
        nodes, edges, label="label", categories=["kind"], rows=np.array([1, 2])
    )
    age, city, about = reader.features
    assert (age.mean, age.scale) == (45, 5)
    assert city.values == ("Oslo", "Rome")
    assert "wine" not in about.words
    assert "fox" in about.words
    assert reader.labels.classes == ("no", "yes")
    graph, notes = reader.read(nodes, edges)
    assert graph.x[0, 0] == -3
    assert notes.unseen == {"amount": 1}


def test_a_value_of_test_rows_alone_gets_no_category():
    nodes = table("id,city\na,Rome\nb,Oslo\nc,Bern\nd,Rome\n", "nodes.csv")
    edges = table(
        "source,target,kind,w\na,b,pays,2\nb,a,owns,-1\nc,d,lends,-8\nd,ghost,x,9\n", "edges.csv"
    )
    options = {"unknown": "drop", "rows": np.array([0, 1])}
    reader = learn_graph_reader(nodes, edges, **options)
    assert reader.feature_names == ("city=Oslo", "city=Rome")
    assert reader.channel_names == ("kind=owns", "kind=pays", "w +", "w -")
    assert reader.channels[1].largest == 2
    graph, notes = reader.read(nodes, edges)
    assert notes.unseen == {"city": 1, "kind": 2}
    assert graph.edge_attr[2].tolist() == [0, 0, 0, 4]


def test_what_is_refused_does_not_depend_on_the_training_rows():
    nodes = "id,age,label\n" + "".join(f"{i},{i}.5,x\n" for i in range(20)) + "z,old,y\n"
    for rows in (None, np.arange(5)):
        with pytest.raises(EdgewiseError, match=r"nodes\.csv:22: column 'age' holds 'old'"):
            learn_graph_reader(*both(nodes, "source,target\n"), label="label", rows=rows)
    words = "id,about\na,\nb,the quick brown fox\n"
    tables = both(words, "source,target\n")
    reader = learn_graph_reader(*tables, rows=np.array([0]), missing="mean")
    assert reader.read(*tables)[0].x.tolist() == [[1], [1]]


def test_edges_find_their_nodes_as_a_dictionary_would():
    random = np.random.default_rng(0)
    names = [f"n{i}" for i in random.permutation(50)]
    ends = random.integers(0, 60, (300, 2))
    cells = [[names[i] if i < 50 else "ghost" for i in side] for side in ends.T]
    nodes = table("id\n" + "\n".join(f" {name} " for name in names), "nodes.csv")
    rows = "".join(f"{a}, {b}\n" for a, b in zip(*cells, strict=True))
    edges = table(f"source,target\n{rows}", "edges.csv")
    reader = learn_graph_reader(nodes, edges, unknown="drop", duplicates="sum")
    graph, notes = reader.read(nodes, edges)
    expected: dict[tuple[int, int], int] = {}
    for a, b in ends.tolist():
        if max(a, b) < 50:
            expected[a, b] = expected.get((a, b), 0) + 1
    assert list(map(tuple, graph.edge_index.T.tolist())) == list(expected)
    assert graph.edge_attr[:, 0].tolist() == list(expected.values())
    assert notes.dropped_edges == int((ends.max(axis=1) >= 50).sum())


def test_a_category_that_an_older_reader_learnt_is_still_one(tmp_path):
    reader, _, _ = learnt()
    reader.save(tmp_path / "reader.json")
    content = (tmp_path / "reader.json").read_text().replace("Oslo", "?").replace('"no"', '"none"')
    (tmp_path / "reader.json").write_text(content)
    nodes = NODES.replace("Oslo", "?").replace(",no\n", ",none\n")
    graph, _ = load_graph_reader(tmp_path / "reader.json").read(*both(nodes))
    assert graph.x[:, 1:3].tolist() == [[0, 1], [1, 0], [0, 1]]
    assert graph.y.tolist() == [1, 0, -1]


FIXTURES = Path(__file__).parents[1] / "fixtures" / "0.1.0"


@pytest.mark.parametrize("run", ["nodes-attention", "nodes-ensemble", "nodes-regression"])
def test_readers_of_version_0_1_0_read_their_tables(run):
    from edgewise.data.graph_files import read_folder

    graph, _ = load_graph_reader(FIXTURES / run / "reader.json").read(*read_folder(FIXTURES))
    assert graph.num_nodes == len((FIXTURES / "nodes.csv").read_text().splitlines()) - 1


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"format": "x"}'])
def test_a_file_that_is_no_reader_is_a_sentence(tmp_path, content):
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(EdgewiseError, match="is not a saved graph reader"):
        load_graph_reader(tmp_path / "r.json")
