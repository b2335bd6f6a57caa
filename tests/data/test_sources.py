"""A word for data is found, or refused with a sentence."""

import pytest

from edgewise.core.errors import EdgewiseError
from edgewise.data.sources import find_source


@pytest.mark.parametrize("name", ["x" * 300 + ".csv", "a\0b.csv"])
def test_a_name_that_no_file_can_have_is_a_sentence(name):
    with pytest.raises(EdgewiseError, match="is neither a data set nor a file"):
        find_source([name])
    with pytest.raises(EdgewiseError, match="is not a file"):
        find_source([name, name])


@pytest.mark.parametrize("place", ["nowhere.csv", "a\0b", "x" * 5000])
def test_three_places_are_three_files(place, tmp_path):
    (tmp_path / "nodes.csv").write_text("graph,id\n")
    with pytest.raises(EdgewiseError, match="is not a file; give a table of graphs, one of nodes"):
        find_source([place, str(tmp_path / "nodes.csv"), str(tmp_path / "nodes.csv")])


@pytest.mark.parametrize(
    ("names", "form"),
    [
        (["graphs.csv", "nodes.tsv", "edges.csv"], "graph folder"),
        (["nodes.csv", "edges.csv"], "folder"),
        (["a.graphml", "b.graphml.gz"], "graphml folder"),
        (["a.graphml", "graphs.parquet"], "graphml folder"),
        (["a.graphml", "nodes.csv", "edges.csv"], "folder"),
        (["T_A.txt", "T_graph_indicator.txt.gz"], "tu folder"),
        (["T_A.txt", "notes.txt"], "folder"),
        ([], "folder"),
    ],
)
def test_a_folder_is_what_its_files_say(names, form, tmp_path):
    for name in names:
        (tmp_path / name).touch()
    assert find_source([str(tmp_path)]).form == form
