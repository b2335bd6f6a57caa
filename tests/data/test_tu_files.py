"""The text files of a TUDataset become graphs, or are refused by file and line."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from edgewise.core.errors import EdgewiseError
from edgewise.data.catalogue import CATALOGUE
from edgewise.data.graph_sources import TUFolderSource
from edgewise.data.sources import find_source
from edgewise.units.base import resolve

# A triangle and an edge; both directions of an edge are listed.
FILES = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "0\n7\n0\n7\n7\n",
    "edge_labels": "2\n2\n0\n0\n2\n2\n0\n0\n",
    "node_attributes": " 1.5, 0\n 2.5, 1\n 3.5, 0\n 0.5, 1\n 0.0, 0\n",
}


def write(folder, **changes):
    folder.mkdir(exist_ok=True)
    for name, text in {**FILES, **changes}.items():
        if text is not None:
            (folder / f"TOY_{name}.txt").write_text(text)
    return folder


def opened(folder, **given):
    source = find_source([str(folder)])
    unit, settings = resolve(source, "default", {"split": "1,0,0", **given})
    return unit.open(source, settings)


def test_a_folder_of_text_files_is_a_set_of_graphs(tmp_path):
    problem = opened(write(tmp_path)).problem
    data = problem.data
    assert str(problem.task) == "classification of label into 2 classes"
    assert problem.truth.tolist() == [1, 0]  # classes are sorted: -1, 1
    assert not problem.settings.model.directed
    assert data.ids == ("1", "2")
    first, second = data.batch([0]), data.batch([1])
    assert first.edge_index.T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1], [0, 2], [2, 0]]
    assert second.edge_index.T.tolist() == [[0, 1], [1, 0]]
    labels = [column.values for column in problem.encoder.columns.features[:1]]
    assert labels == [("0", "7")]
    assert first.x[:, :2].tolist() == [[1, 0], [0, 1], [1, 0]]
    assert first.edge_attr.tolist() == [[0, 1], [0, 1], [1, 0], [1, 0], [0, 1], [0, 1]]
    raw = np.array([[1.5, 0], [2.5, 1], [3.5, 0], [0.5, 1], [0, 0]])
    scaled = (raw - raw.mean(0)) / raw.std(0)
    assert torch.allclose(data.x[:, 2:], torch.tensor(scaled, dtype=torch.float32))


def test_files_may_be_packed_and_only_two_are_needed(tmp_path):
    plain = opened(write(tmp_path / "plain", node_attributes=None))
    packed = write(tmp_path / "packed", node_attributes=None)
    for path in list(packed.iterdir()):
        Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert torch.equal(opened(packed).problem.data.x, plain.problem.data.x)
    values = write(tmp_path / "values", graph_labels=None, graph_attributes="1.5\n2.25\n")
    problem = opened(values).problem
    assert problem.task.names == ("graph_attribute_0",)
    assert problem.truth[:, 0].tolist() == [1.5, 2.25]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"A": "1, 2\n2, x\n"}, r"TOY_A.txt does not hold numbers in lines \(.* x'"),
        ({"A": "1, 2\n2\n"}, r"TOY_A.txt does not hold numbers in lines"),
        ({"A": "1\n2\n"}, r"TOY_A.txt has 1 numbers in a line, expected 2"),
        ({"A": ""}, r"TOY_A.txt is empty"),
        ({"A": "1, 9\n", "edge_labels": "0\n"}, r"TOY_A.txt:1: the edge from '1' to '9' names '9'"),
        ({"A": "1, 4\n", "edge_labels": "0\n"}, r"TOY_A.txt:1: .* joins the graphs '1' and '2'"),
        ({"graph_indicator": "1\n1\n1\n2\n0\n"}, r"indicator.txt:5: there is no graph 0"),
        ({"graph_indicator": "1\n1\n1\n2\n77\n"}, r"indicator.txt:5: there is no graph 77"),
        ({"graph_indicator": "1\n1\n1\n3\n3\n"}, r"_graph_labels.txt has 2 lines for 3 graphs"),
        ({"node_labels": "0\n"}, r"TOY_node_labels.txt has 1 lines for 5 nodes"),
        ({"edge_labels": "0\n"}, r"TOY_edge_labels.txt has 1 lines for 8 edges"),
        ({"node_attributes": "1\nnan\n1\n1\n1\n"}, r"attributes.txt:2: the number is not finite"),
    ],
)
def test_damaged_files_are_refused_by_name(tmp_path, changes, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        opened(write(tmp_path, **changes))


def test_two_sets_in_one_folder_are_refused(tmp_path):
    write(tmp_path)
    (tmp_path / "OTHER_A.txt").write_text("1, 2\n")
    (tmp_path / "OTHER_graph_indicator.txt").write_text("1\n1\n")
    with pytest.raises(EdgewiseError, match=r"holds the data sets \[OTHER, TOY\]"):
        opened(tmp_path)


def test_other_text_files_make_no_such_folder(tmp_path):
    (tmp_path / "TOY_A.txt").write_text("1, 2\n")
    assert not isinstance(find_source([str(tmp_path)]), TUFolderSource)


@pytest.mark.slow
@pytest.mark.dataset
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mutagenicity", "GraphSet(graphs=4337, nodes=131488, edges=266894, channels=3, feature"),
        ("proteins", "GraphSet(graphs=1113, nodes=43471, edges=162088, channels=1, features=4)"),
    ],
)
def test_the_data_sets_have_their_published_sizes(name, expected):
    try:
        found = opened(name, split="0.8,0.1,0.1")
    except EdgewiseError as error:
        pytest.skip(f"{name} is unavailable: {error}")
    assert found.notes[0].startswith(expected)
    assert found.problem.task.headline == "accuracy"
    assert not found.notices
    assert CATALOGUE[name].size > 10**6
