"""Whatever bytes come in, out comes data or one sentence: never a stack, never a hang."""

import json
from contextlib import suppress
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from edgewise.core.errors import EdgewiseError
from edgewise.data.archives import gunzip, take_members
from edgewise.data.chemistry import read_smiles
from edgewise.data.citation import (
    parse_cites,
    parse_content,
    parse_pubmed_cites,
    parse_pubmed_nodes,
)
from edgewise.data.featurizers import load_featurizer
from edgewise.data.graph_reader import load_graph_reader
from edgewise.data.graph_tables import learn_graph_reader
from edgewise.data.splits import load_split
from edgewise.data.tables import parse_text

PATH = Path("attack")
TABLE_PIECES = st.sampled_from(
    ["id", "source", "target", ",", "\n", "\r\n", '"', "a", "b", " ", "1", "-2.5", "1e999", "NaN"]
)
SMILES_PIECES = st.sampled_from([*"CNOc1()[]=#.+-@/\\%0Hn:*~ \u00e9", "[Na+]", "Cl"])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["train", "validation", "test", "kind", "pairs", "format", "features"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
LENIENT = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@LENIENT
@given(st.binary(max_size=200))
def test_any_bytes_are_a_table_an_archive_papers_or_a_sentence(data):
    for read in (
        lambda: parse_text(data, "attack"),
        lambda: gunzip(b"\x1f\x8b" + data, "attack"),
        lambda: take_members(data, "attack", {"x"}),
        lambda: take_members(b"PK\x03\x04" + data, "attack", {"x"}),
        lambda: parse_content(data, PATH),
        lambda: parse_content(data[:5] + b"\t0\t1\t" + data[5:], PATH),
    ):
        with suppress(EdgewiseError):
            read()


@LENIENT
@given(st.text(max_size=100))
def test_any_text_is_citations_or_a_sentence(text):
    for parse in (parse_cites, parse_pubmed_cites, parse_pubmed_nodes):
        with suppress(EdgewiseError):
            parse(text, PATH)
        with suppress(EdgewiseError):
            parse(f"a\nb\tnumeric:w:0.0\n{text}", PATH)


@pytest.mark.slow
@LENIENT
@given(st.lists(TABLE_PIECES, max_size=30), st.lists(TABLE_PIECES, max_size=30))
def test_any_two_tables_are_a_graph_or_a_sentence(nodes, edges):
    with suppress(EdgewiseError):
        tables = (
            parse_text(("id,w\n" + "".join(nodes)).encode(), "nodes.csv"),
            parse_text(("source,target,w\n" + "".join(edges)).encode(), "edges.csv"),
        )
        learn_graph_reader(*tables, missing="mean", unknown="drop", duplicates="max").read(*tables)


@LENIENT
@given(st.lists(SMILES_PIECES, max_size=12).map("".join))
def test_any_smiles_is_a_molecule_or_a_listed_row(smiles):
    codes = read_smiles([smiles])
    assert len(codes) + len(codes.invalid) == 1


@pytest.mark.slow
@LENIENT
@given(ANY_JSON)
def test_any_json_is_refused_or_read_by_the_loaders(tmp_path, content):
    path = tmp_path / "attack.json"
    path.write_text(json.dumps(content))
    for load in (load_split, load_featurizer, load_graph_reader):
        with suppress(EdgewiseError):
            load(path)
