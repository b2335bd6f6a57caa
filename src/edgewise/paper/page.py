"""The reproduction as one HTML page: ablation, agreement, tables, classes."""

import re
from collections.abc import Sequence

from edgewise import __version__
from edgewise.paper.ablation import ablation_section
from edgewise.paper.agreement import agreement_section
from edgewise.paper.class_balance import balance_section
from edgewise.paper.experiments import PROTOCOLS, RUNS, plan
from edgewise.paper.networks import Networks
from edgewise.paper.printed import CITATION, ROWS_2, SPLITS, TABLE_2
from edgewise.paper.results import Results
from edgewise.paper.summary import cell, reached
from edgewise.paper.tables import PROTOCOL, Table
from edgewise.report.markup import Markup, as_markup, element, table
from edgewise.report.shell import Sections, whole_page
from edgewise.report.theme import drawing
from edgewise.report.wording import NOTHING


def reproduction_page(results: Results, networks: Networks, tables: Sequence[Table]) -> str:
    """The text of the page; what has not been run is left out, or said to be missing."""
    with drawing():
        sections: Sections = [
            ("ablation", "What each component adds", ablation_section(results)),
            ("agreement", "The paper against ours", agreement_section(results)),
            ("tables", "Tables", _tables(tables)),
            ("classes", "Classes of the training subsets", balance_section(networks)),
        ]
        footer = f"Made by Edgewise {__version__}."
        return whole_page("Edgewise reproduction", _heading(results), sections, footer)


def _heading(results: Results) -> Markup:
    planned = plan(list(RUNS))
    done = len(planned) - len(results.missing(planned))
    paper = "Exploiting Edge Features in Graph Neural Networks"
    runs = element(
        "div",
        element("span", "runs", class_="of"),
        element("strong", f"{done:,}"),
        element("span", f"of {len(planned):,} of the whole plan", class_="rows"),
        class_="score judged",
    )
    ways = " and ".join(f"{protocol} ({what})" for protocol, what in PROTOCOL.items())
    told = (
        f"Table 2 has two protocols, {ways}, with up to {RUNS['cora']} runs for each cell. Table 3 "
        f"has another random split for each of up to {RUNS['tox21']} runs. Networks have the "
        "settings of the preset paper, but for Weave, which has its own."
    )
    return element(
        "div",
        element("p", "Edgewise reproduction", class_="brand"),
        element("h1", "The paper\u2019s tables, run again"),
        element("p", f"{paper}, Gong and Cheng, CVPR 2019, arXiv:1809.02709", class_="task"),
        element("div", runs, *(_reached(results, p) for p in PROTOCOLS), class_="scores"),
        element("p", told),
    )


def _reached(results: Results, protocol: str) -> Markup:
    """How many cells of Table 2 are as good as the paper's."""
    found = [
        reached(ours, TABLE_2[row, dataset, split])
        for dataset in CITATION
        for split in SPLITS
        for row in ROWS_2
        if (ours := cell(results, "test", dataset, split, protocol, row)).runs
    ]
    below = "cells no lower than the paper\u2019s mean less twice its spread"
    return element(
        "div",
        element("span", f"Table 2, {protocol}", class_="of"),
        element("strong", f"{sum(found)} of {len(found)}" if found else NOTHING),
        element("span", below if found else "not run yet", class_="rows"),
        class_="score",
    )


def _tables(tables: Sequence[Table]) -> Markup:
    if not tables:
        return element("p", "Nothing has been run, and no data could be read.", class_="note")
    return element("div", *map(_as_html, tables), class_="stack")


def _as_html(shown: Table) -> Markup:
    rows = [[_marked_up(cell) for cell in row] for row in shown.rows]
    return element(
        "figure",
        element("figcaption", shown.title),
        table(shown.header, rows, label=shown.title),
        *(element("p", _marked_up(note)) for note in shown.notes),
    )


def _marked_up(text: str) -> Markup:
    """The two marks of Markdown that tables use: bold words and code."""
    bold = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", as_markup(text))
    return Markup(re.sub(r"`(.+?)`", r"<code>\1</code>", bold))
