"""Whatever users call their things, a page shows it as words and does nothing else with it."""

from dataclasses import replace

import pytest
from pages import Page, check_closed, check_whole
from small_runs import HOSTILE, KINDS, made, make_nodes, page, write_csv

from edgewise.report import RunResults, make_report
from edgewise.report.blocks import CaptionedFigure, Heading, Key, ScoreCard, Section, TableData
from edgewise.report.rendering import render_page
from edgewise.report.theme import chart, drawing, figure
from edgewise.runs.folder import reopen
from edgewise.runs.report import write_report

ATTACKS = (
    "<script>alert(1)</script>",
    "</style></title><img src=x onerror=alert(1)>",
    "\"'><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)//-->",
    "]]><b>&amp;&lt;",
)


OURS = {
    *("html", "head", "meta", "title", "style", "body", "header", "nav", "main", "section"),
    *("footer", "aside", "article", "div", "p", "h1", "h2", "h3", "a", "b", "i", "span", "small"),
    *("strong", "mark", "code", "wbr", "ul", "li", "dl", "dt", "dd", "figure", "figcaption"),
    *("table", "thead", "tbody", "tr", "th", "td"),
    *("svg", "g", "path", "defs", "clippath", "rect", "use", "text", "ellipse", "tspan"),
}


def check_harmless(text):
    """Nothing but our own elements is in the page, and nothing of it runs."""
    parsed = check_whole(text)
    check_closed(text)
    assert set(parsed.tags) <= OURS
    assert parsed.tags["style"] == 1
    return parsed


@pytest.mark.parametrize("attack", ATTACKS)
def test_every_block_of_a_template_escapes_its_words(attack):
    with drawing():
        drawn, axes = figure()
        axes.set_xlabel(attack)
        picture = chart(drawn, "toy", attack)
    shown = CaptionedFigure(attack, picture, [Key("ink", "dot", attack)], [attack])
    table = TableData(attack, (attack, attack), [(attack, attack)], title=attack)
    content = {"text": [attack], "figures": [shown], "tables": [table], "notes": [attack]}
    text = render_page(
        attack,
        Heading(attack, attack, attack, [ScoreCard(attack, attack, attack)], attack),
        [Section("anchor", attack, "panel.html.jinja", content)],
        attack,
        template="report.html.jinja",
        notices=(attack,),
        interrupted=attack,
        resume=attack,
    )
    parsed = check_harmless(text)
    # Title, 3 of the heading, 3 of a score, note, link, warning twice, notice, heading, text,
    # caption, axis, key, note, table's title and four cells, note, footer.
    squeezed = "".join(parsed.text).replace("\n", "")
    assert squeezed.count(attack) == 25
    labels = [value for _, name, value in parsed.attributes if name == "aria-label"]
    assert labels.count(attack) == 2


def test_control_characters_are_replaced_everywhere():
    heading = Heading("a\x01", "b\x02", "c\ud800", [], "")
    text = render_page("t\x00", heading, [], "f\x7f")
    assert not {chr(code) for code in (0, 1, 2, 0x7F, 0xD800)} & set(text)
    assert text.count("\ufffd") == 5


@pytest.mark.slow
def test_hostile_names_are_shown_and_do_no_harm(runs):
    for kind in KINDS:
        text = page(runs[kind])
        check_harmless(text)
        assert "\x01" not in text
    words = Page(page(runs["nodes"])).words
    assert "<script>alert(1)</script>" in words.replace(" ", "")
    for expected in ("$x_", "名前", "a <command>", "<i>"):
        assert expected in words
    assert "b<" in Page(page(runs["multilabel"])).words


@pytest.mark.slow
def test_names_of_folders_files_and_columns_do_no_harm(tmp_path):
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    run, opened, _ = made(folder / "run<b>", make_nodes(tmp_path / "<script>alert(2)"))
    opened = replace(opened, notes=ATTACKS)
    parsed = check_harmless(write_report(run, opened).read_text(encoding="utf-8"))
    assert "<img src=x onerror=alert(1)>/run<b>" in parsed.words
    assert all(attack in parsed.words for attack in ATTACKS)
    target = "</th><script>a=1</script>"
    rows = [("C" * (k + 1), k / 3) for k in range(12)]
    path = write_csv(tmp_path / "molecules.csv", ("smiles", target), rows)
    run, opened, _ = made(tmp_path / "run", [path], target=(target,), split="0.5,0.25,0.25")
    parsed = check_harmless(write_report(run, opened).read_text(encoding="utf-8"))
    assert f"Regression of {target}" in parsed.words


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_smiles_of_a_folder_from_elsewhere_do_no_harm(runs, kind):
    run = runs[kind]
    model = run.model()
    results = RunResults.from_folder(run, model.task)
    ids = [ATTACKS[k % len(ATTACKS)] for k in range(len(results.ids))]
    hostile = replace(results, ids=ids)
    parsed = check_harmless(make_report(hostile, model, reopen(run), notices=HOSTILE))
    assert "<script>alert(1)</script>" in parsed.words.replace(" ", "")
