"""The page of the reproduction shows what is known, says what is not, and fetches nothing."""

import io
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
import typer
from pages import Page, check_closed, check_colours, check_whole
from rich.console import Console as Terminal
from typer.testing import CliRunner

from edgewise.cli.console import Console
from edgewise.cli.reproduce import reproduce
from edgewise.cli.terminal_table import drawn_for_terminal
from edgewise.core.errors import EdgewiseError
from edgewise.nn.network import VARIANTS
from edgewise.paper import networks as counting
from edgewise.paper.ablation import COMPONENTS, known_gains, limits, printed_gain
from edgewise.paper.agreement import pairs
from edgewise.paper.class_balance import write_class_balance
from edgewise.paper.experiments import plan
from edgewise.paper.networks import Networks, count_networks
from edgewise.paper.output import all_tables, main_tables, write_output
from edgewise.paper.page import marked
from edgewise.paper.printed import BASELINE, TABLE_2, TABLE_3
from edgewise.paper.result_store import ResultStore
from edgewise.paper.summary import Difference, difference
from edgewise.paper.tables import PaperTable
from edgewise.report.theme import COLOUR, light_colours

pytestmark = pytest.mark.slow

CORA = {"dataset": "cora", "split": "dense", "protocol": "fixed"}
NETWORKS = Networks(
    {"cora": (2708, 5429, 1433, 7)},
    {"cora": {"Theory": 217, "Rule_<Learning>": 111}},
    {"pubmed": "it is unavailable; put it <there>"},
)
NOTHING = Networks({}, {}, {})
PLANS = {
    "everything": (["cora", "citeseer", "pubmed", "tox21", "lipo", "freesolv"], (), 2),
    "one data set": (["cora"], (), 2, ["fixed"]),
    "one run": (["cora"], (), 1, ["random"], ["sparse"]),
    "baselines alone": (["cora"], ["GCN", "GAT"], 2),
    "molecules alone": (["freesolv"], ["RF", "EGNN(C)"], 1),
    "nothing": ([],),
}


def known(folder, *asked):
    """Results around the printed ones, except for the baselines that collapse in the paper."""
    draw, results = np.random.default_rng(0), ResultStore(folder)
    for e in plan(*asked):
        scores = {}
        for part in ("validation", "test"):
            if e.table == 3:
                printed = TABLE_3[e.row, e.dataset, part]
                scores[part] = draw.normal(printed.mean, printed.std)
            else:
                row = f"{e.row}*" if (e.dataset, e.row) == ("cora", "GCN") else e.row
                scores[part] = draw.normal(TABLE_2[row, e.dataset, e.split].mean, 0.3) / 100
        results.add(e, {**vars(e), "settings": e.marks[0], **scores})
    return results


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_disks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(params=PLANS, scope="module")
def written(request, tmp_path_factory):
    """A folder with the output of each plan, and the tables in it."""
    folder = tmp_path_factory.mktemp("written")
    results = known(folder / "results", *PLANS[request.param])
    tables = all_tables(results, NETWORKS.sizes)
    write_output(results, NETWORKS, tables, folder)
    return folder, tables, request.param


def page_of(folder):
    return (folder / "index.html").read_text(encoding="utf-8")


def test_the_page_is_whole_and_fetches_nothing(written):
    folder, *_ = written
    check_closed(page_of(folder))
    check_whole(page_of(folder))
    check_colours(page_of(folder))
    assert "://" not in page_of(folder)


def test_the_page_shows_every_cell_of_the_tables(written):
    folder, tables, _ = written
    words = Page(page_of(folder)).words
    markdown = (folder / "tables.md").read_text()
    for table in tables:
        assert table.markdown() in markdown
        assert (folder / f"{table.name}.csv").read_text() == table.csv()
        assert "**" not in table.csv()
        for text in (table.title, *(cell for row in table.rows for cell in row)):
            assert text.replace("**", "") in words


FIGURES = {  # ablation, Table 2, Table 3
    "everything": (6, 2, 3),
    "one data set": (2, 1, 0),
    "one run": (1, 1, 0),
    "baselines alone": (0, 2, 0),
    "molecules alone": (0, 0, 1),
    "nothing": (0, 0, 0),
}


def test_what_is_known_is_drawn_and_what_is_not_is_said(written):
    folder, _, name = written
    page = Page(page_of(folder))
    labels = [v for tag, key, v in page.attributes if (tag, key) == ("svg", "aria-label")]
    starts = ("What components add", "Table 2", "Table 3")
    assert tuple(sum(v.startswith(s) for v in labels) for s in starts) == FIGURES[name]
    assert sum("training nodes" in label for label in labels) == 1
    assert "Rule <Learning>" in page.words
    assert "PubMed is left out: it is unavailable; put it <there>." in page.words
    runs = len(plan(*PLANS[name]))
    assert f"runs {runs:,} of 4,440" in page.words
    ablation, agreement, _ = FIGURES[name]
    assert ("nothing to compare" in page.words) == (ablation == 0)
    assert ("No cell of Table 2 or 3" in page.words) == (name == "nothing")
    assert ("not run yet" in page.words) == (agreement < 2)
    assert ("too few runs for intervals" in page.words) == (name == "one run")
    assert (folder / "figure-2.svg").read_text().count("<svg") == 1


def test_a_page_can_be_written_again_bit_for_bit(tmp_path):
    results = known(tmp_path, *PLANS["one data set"])
    for name in ("a", "b"):
        write_output(results, NETWORKS, all_tables(results, {}), tmp_path / name)
    assert page_of(tmp_path / "a") == page_of(tmp_path / "b")


def test_without_data_and_results_there_is_still_a_page(tmp_path):
    results = ResultStore(tmp_path)
    paths = write_output(results, NOTHING, all_tables(results, {}), tmp_path)
    assert [path.name for path in paths] == ["index.html", "tables.md"]
    assert "no data could be read" in check_whole(page_of(tmp_path)).words


def has(row):
    """The components of a row, by the settings it is run with."""
    made = VARIANTS[row]
    found = {"D": made.normalize == "doubly_stochastic", "M": made.directed}
    return {**found, "A": made.adapt} if made.layer == "attention" else found


def test_the_labels_of_the_ablation_name_the_components_that_are_added():
    for label, row in COMPONENTS.items():
        baseline, added = label.split(" + ")
        assert BASELINE[row] == baseline
        assert not any(has(baseline).values())
        everything = added in ("both", "all")
        assert has(row) == {name: everything or name == added for name in has(row)}


def test_every_component_stands_alone_against_its_baseline(tmp_path):
    results = known(tmp_path, ["cora"], (), 3, ["fixed"], ["dense"])
    gains = known_gains(results, "cora")
    assert len(gains) == 2 * len(COMPONENTS) == 14
    assert gains["fixed", "dense", "EGNN(A)-D-M*"] == difference(
        results, **CORA, row="EGNN(A)-D-M*", baseline="GAT*"
    )
    assert printed_gain("cora", "dense", "EGNN(C)") == pytest.approx(88.8 - 72.0)
    assert printed_gain("cora", "sparse", "EGNN(A)-D-M*") == pytest.approx(82.6 - 82.7)


def test_a_paper_that_lies_far_off_is_an_arrow_with_its_number(tmp_path):
    results = known(tmp_path, ["cora"], ["GCN", "EGNN(C)"], 2, ["fixed"], ["dense"])
    write_output(results, NETWORKS, [], tmp_path)
    drawn = re.search(r'<svg[^>]*"What components add.*?</svg>', page_of(tmp_path), re.DOTALL)[0]
    assert ">+16.8<" in drawn


def test_few_runs_and_wide_intervals_do_not_squeeze_the_scale():
    usual = Difference(0.01, 0.005, 0.015, 20)
    low, high = limits(
        [usual, Difference(-0.01, -0.31, 0.29, 2), Difference(0.02, *[math.nan] * 2, 1)]
    )
    assert -4 < low < -3
    assert 2 < high < 3


def test_a_single_pair_of_runs_has_a_difference_without_an_interval(tmp_path):
    results = known(tmp_path, ["cora"], (), 1, ["fixed"], ["dense"])
    found = difference(results, **CORA, row="EGNN(C)")
    assert (found.runs, found.certain) == (1, False)
    assert math.isfinite(found.mean)
    assert math.isnan(found.low)
    gains = {table.name: table for table in all_tables(results, {})}["gains-fixed"]
    assert re.fullmatch(r"[+-]\d+\.\d", gains.rows[2][2])


def test_the_scatter_holds_every_cell_that_was_run(tmp_path):
    results = known(tmp_path, ["cora", "pubmed"], ["GCN", "GAT*"], 1, ["random"])
    assert [(p.row, p.dataset, p.split) for p in pairs(results, "random")] == [
        (row, dataset, split)
        for dataset in ("cora", "pubmed")
        for split in ("sparse", "dense")
        for row in ("GCN", "GAT*")
    ]
    assert pairs(results, "fixed") == []


def test_the_short_tables_hold_baselines_and_full_models(tmp_path):
    results = known(tmp_path, ["citeseer", "lipo"], (), 1)
    nodes, molecules = main_tables(results)
    assert [row[0] for row in nodes.rows] == ["GCN", "GAT", "EGNN(C)", "EGNN(A)"]
    assert nodes.header[1:] == ("CiteSeer sparse", "CiteSeer dense")
    assert [row[0] for row in molecules.rows] == ["RF", "Weave", "EGNN(C)", "EGNN(A)"]
    assert molecules.header[1:] == ("Lipophilicity validation", "Lipophilicity test")


def gone(name):
    raise EdgewiseError(f"{name} is unavailable; fetch it")


def test_networks_that_are_unavailable_are_named_with_their_reason(monkeypatch):
    monkeypatch.setattr(counting, "load_citation", gone)
    counted = count_networks(["cora", "pubmed"])
    assert counted.unavailable["pubmed"] == "pubmed is unavailable; fetch it"
    assert (counted.sizes, counted.training_classes) == ({}, {})


def test_the_command_writes_what_is_there_without_data(monkeypatch, tmp_path):
    monkeypatch.setattr(counting, "load_citation", gone)
    known(tmp_path / "results", *PLANS["one data set"])
    app = typer.Typer()
    app.command()(reproduce)
    places = ["--results", str(tmp_path / "results"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["--runs", "0", *places])
    assert done.exit_code == 0, done.output
    assert "PubMed is left out of Table 1 and Figure 2: pubmed is unavailable" in done.output
    assert "| GCN* |" in done.output  # Markdown, because this is no terminal
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"index.html", "tables.md", "table-2-fixed.csv", "gains-fixed.csv"}
    quiet = CliRunner().invoke(app, ["--runs", "0", "--quiet", *places])
    assert (quiet.exit_code, quiet.output) == (0, "")


TABLE = PaperTable(
    "toy",
    "A toy",
    ("", "one", "two"),
    (("GCN*", "**1.0 ± 0.1** (1.1)", "+1.0 [-2.0, +3.0]"),),
    ("so.",),
)


@pytest.mark.parametrize("width", [30, 80])
def test_a_terminal_gets_tables_no_wider_than_it_is(width):
    terminal = Terminal(width=width, record=True, file=io.StringIO())
    terminal.print(drawn_for_terminal(TABLE, width))
    text = terminal.export_text()
    assert all(len(line) <= width for line in text.splitlines())
    for words in ("A toy", "1.0 ± 0.1 (1.1)", "+1.0 [-2.0, +3.0]", "so."):
        assert words in text
    assert text.count("GCN* ") == (1 if width == 80 else 2)


def test_a_pipe_gets_markdown(capsys):
    Console().table(TABLE)
    assert capsys.readouterr().out == f"\n{TABLE.markdown()}\n"


def test_one_figure_of_the_classes_serves_the_page_and_the_files(tmp_path):
    for ending, start in {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}.items():
        paths = [tmp_path / f"{name}.{ending}" for name in "ab"]
        for path in paths:
            write_class_balance(NETWORKS.training_classes, path)
        first, again = (path.read_bytes() for path in paths)
        assert first.startswith(start)
        assert first == again
    drawn = (tmp_path / "a.svg").read_text()
    assert light_colours()["series-0"] in drawn
    assert not [colour for colour in COLOUR.values() if colour in drawn]
    with pytest.raises(EdgewiseError, match=r"cannot draw .*ends in \.svg"):
        write_class_balance(NETWORKS.training_classes, tmp_path / "a.words")


def test_marks_of_markdown_become_pieces_and_nothing_else_is_special():
    assert marked("**1.0 ± 0.1** (1.1)") == [("b", "1.0 ± 0.1"), ("", " (1.1)")]
    assert marked("a `*`: <b>") == [("", "a "), ("code", "*"), ("", ": <b>")]
    assert marked("GCN*") == [("", "GCN*")]


def test_the_paper_uses_no_panel_of_the_report():
    for path in Path(counting.__file__).parent.rglob("*.py"):
        assert "report.panels" not in path.read_text()
