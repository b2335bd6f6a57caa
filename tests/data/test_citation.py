"""Direction is kept, every id is a string, and what is dropped is counted."""

from pathlib import Path

import pytest
import torch

from edgewise.core.errors import EdgewiseError
from edgewise.data.catalogue import Edition
from edgewise.data.citation import (
    _assemble,
    load_citation,
    parse_cites,
    parse_content,
    parse_pubmed_cites,
    parse_pubmed_nodes,
)
from edgewise.data.store import StoredFile

PATH = Path("toy")
CONTENT = b"31\t0\t1\tOld\nbrin98\t1\t1\tNew\n007\t0\t0\tOld\n"


def assembled(pairs):
    stored = StoredFile(PATH, CONTENT, Edition("toy", "sha256:"))
    return _assemble(parse_content(CONTENT, PATH), pairs, 0, stored)


def test_edges_point_from_citing_to_cited():
    graph, _ = assembled(parse_cites("31\tbrin98\n31\t007\n", PATH))
    assert graph.edge_index.tolist() == [[1, 2], [0, 0]]


def test_ids_are_strings_and_labels_are_sorted_classes():
    graph, _ = assembled([])
    assert graph.node_ids == ("31", "brin98", "007")
    assert graph.class_names == ("New", "Old")
    assert graph.y.tolist() == [1, 0, 1]
    assert graph.x.tolist() == [[0, 1], [1, 1], [0, 0]]


def test_unknown_ids_and_self_citations_are_dropped_and_counted_by_line():
    graph, notes = assembled(parse_cites("31\t99\n31\t31\n31\t007\n007\t31\n", PATH))
    assert graph.num_edges == 2
    assert (notes.lines, notes.unknown, notes.self_citations) == (4, (1,), (2,))
    assert (notes.reciprocal, notes.isolated) == (1, 1)
    assert "dropped 1 that name a paper without features and 1 self citations" in str(notes)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"a\t0\t1\tX\nb\t0\tY\n", 2),  # a word is missing
        (b"a\t0\t2\tX\n", 1),  # a word that is neither 0 nor 1
        (b"a\t0\t1\tX\n\nno tabs here\n", 3),
        (b"a\t0 1\tX\n", 1),
        (b"\xff\t0\t1\tX\n", 1),  # not UTF-8
    ],
)
def test_a_bad_content_line_is_named(content, line):
    with pytest.raises(
        EdgewiseError, match=rf"^toy:{line}: expected an id, .*words that are 0 or 1"
    ):
        parse_content(content, PATH)


def test_a_windows_copy_of_the_content_reads_the_same():
    table = parse_content(CONTENT.replace(b"\n", b"\r\n"), PATH)
    assert table.labels == ("Old", "New", "Old")


def test_an_empty_content_file_is_a_sentence():
    with pytest.raises(EdgewiseError, match="toy is empty"):
        parse_content(b"\n", PATH)


def test_a_bad_citation_line_is_named():
    with pytest.raises(EdgewiseError, match="toy:2: expected 'cited citing', got '35'"):
        parse_cites("1\t2\n35\n", PATH)


def test_pubmed_rows_fill_their_named_columns():
    text = (
        "NODE\tpaper\ncat=1,2,3:label\tnumeric:w-rat:0.0\tnumeric:w-use:0.0\tstring:summary\n"
        "12\tlabel=3\tw-use=0.5\tsummary=w-use\n9\tlabel=1\tw-rat=0.25\tsummary=w-rat\n"
    )
    table = parse_pubmed_nodes(text, PATH)
    assert table.ids == ("12", "9")
    assert table.labels == ("3", "1")
    assert table.features.tolist() == [[0, 0.5], [0.25, 0]]


def test_a_pubmed_row_with_an_unnamed_word_is_named():
    text = "NODE\tpaper\ncat=1:label\tnumeric:w-rat:0.0\n12\tlabel=3\tw-mouse=0.5\n"
    with pytest.raises(EdgewiseError, match=r"toy:3: expected .*w-mouse"):
        parse_pubmed_nodes(text, PATH)


def test_pubmed_citations_run_from_the_first_to_the_second():
    text = "DIRECTED\tcites\nNO_FEATURES\n7\tpaper:1\t|\tpaper:2\n"
    assert parse_pubmed_cites(text, PATH) == [("1", "2")]
    with pytest.raises(EdgewiseError, match=r"toy:3: expected .*got '7 1 2'"):
        parse_pubmed_cites("\n\n7 1 2\n", PATH)


def test_molecules_are_not_a_citation_network():
    with pytest.raises(EdgewiseError, match="tox21 holds molecules"):
        load_citation("tox21")


FACTS = {
    # nodes, features, non-zero features, lines, dropped unknown, self, edges, reciprocal, isolated
    "cora": (2708, 1433, 49216, 5429, 0, 0, 5429, 151, 0),
    "citeseer": (3312, 3703, 105165, 4732, 17, 124, 4591, 55, 48),
    "pubmed": (19717, 500, 988031, 44338, 0, 3, 44335, 11, 0),
}
CLASSES = {
    "cora": [298, 418, 818, 426, 217, 180, 351],
    "citeseer": [249, 596, 701, 508, 668, 590],
    "pubmed": [4103, 7875, 7739],
}


@pytest.mark.slow
@pytest.mark.dataset
@pytest.mark.parametrize("name", FACTS)
def test_the_real_networks_have_the_published_counts(name, need):
    need(name)
    graph, notes = load_citation(name)
    assert FACTS[name] == (
        graph.num_nodes,
        graph.num_features,
        int((graph.x != 0).sum()),
        notes.lines,
        len(notes.unknown),
        len(notes.self_citations),
        graph.num_edges,
        notes.reciprocal,
        notes.isolated,
    )
    assert torch.bincount(graph.y).tolist() == CLASSES[name]


@pytest.mark.dataset
def test_a_famous_cora_paper_is_cited_often_and_nobody_cites_many(need):
    need("cora")
    graph, _ = load_citation("cora")
    source, target = graph.edge_index
    assert int((target == graph.node_ids.index("35")).sum()) == 166
    assert int(torch.bincount(source).max()) == 5


@pytest.mark.dataset
def test_directed_channels_of_cora_have_the_empty_rows_the_design_counts(need):
    need("cora")
    graph, _ = load_citation("cora")
    citing = len(torch.unique(graph.edge_index[0]))
    cited = len(torch.unique(graph.edge_index[1]))
    assert (graph.num_nodes - citing, graph.num_nodes - cited) == (486, 1143)
