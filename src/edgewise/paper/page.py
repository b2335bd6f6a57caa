"""The reproduction as one HTML page: ablation, agreement, tables, classes."""

import re
from collections.abc import Sequence

from edgewise import __version__
from edgewise.paper.ablation import ablation_content
from edgewise.paper.agreement import agreement_content
from edgewise.paper.class_balance import balance_content
from edgewise.paper.experiments import PROTOCOLS, RUNS, plan
from edgewise.paper.networks import Networks
from edgewise.paper.printed import CITATION, ROWS_2, SPLITS, TABLE_2
from edgewise.paper.result_store import ResultStore
from edgewise.paper.summary import cell, reached
from edgewise.paper.tables import PROTOCOL, PaperTable
from edgewise.report.blocks import Heading, ScoreCard, Section
from edgewise.report.rendering import render_page
from edgewise.report.theme import drawing
from edgewise.report.wording import NOTHING

_PAPER = (
    "Exploiting Edge Features in Graph Neural Networks, Gong and Cheng, CVPR 2019, arXiv:1809.02709"
)


def reproduction_page(
    results: ResultStore, networks: Networks, tables: Sequence[PaperTable]
) -> str:
    """The text of the page; what has not been run is left out, or reported as missing."""
    with drawing():
        contents = {
            "ablation": ("What each component adds", ablation_content(results)),
            "agreement": ("The paper against ours", agreement_content(results)),
            "tables": ("Tables", {"tables": tables, "marked": marked}),
            "classes": ("Classes of the training subsets", balance_content(networks)),
        }
    templates = {"classes": "panel.html.jinja"}  # figures and notes, as in a report
    sections = [
        Section(name, title, templates.get(name, f"{name}.html.jinja"), content)
        for name, (title, content) in contents.items()
    ]
    footer = f"Made by Edgewise {__version__}."
    heading = _heading(results)
    return render_page(
        "Edgewise reproduction", heading, sections, footer, packages=["edgewise.paper"]
    )


def _heading(results: ResultStore) -> Heading:
    planned = plan(list(RUNS))
    done = len(planned) - len(results.missing(planned))
    runs = ScoreCard("runs", f"{done:,}", f"of {len(planned):,} of the whole plan", main=True)
    ways = " and ".join(f"{protocol} ({what})" for protocol, what in PROTOCOL.items())
    return Heading(
        brand="Edgewise reproduction",
        title="The paper\u2019s tables, run again",
        subtitle=_PAPER,
        scores=[runs, *(_reached(results, protocol) for protocol in PROTOCOLS)],
        note=f"Table 2 has two protocols, {ways}, with up to {RUNS['cora']} runs for each cell. "
        f"Table 3 has both, too, with up to {RUNS['tox21']} runs. Networks have the settings "
        "of the preset paper, but for Weave, which has its own.",
    )


def _reached(results: ResultStore, protocol: str) -> ScoreCard:
    """How many cells of Table 2 are as good as the paper's."""
    found = [
        reached(ours, TABLE_2[row, dataset, split])
        for dataset in CITATION
        for split in SPLITS
        for row in ROWS_2
        if (ours := cell(results, "test", dataset, split, protocol, row)).runs
    ]
    below = "cells no lower than the paper\u2019s mean less twice its standard deviation"
    return ScoreCard(
        f"Table 2, {protocol}",
        f"{sum(found)} of {len(found)}" if found else NOTHING,
        below if found else "not run yet",
    )


def marked(text: str) -> list[tuple[str, str]]:
    """The text in pieces, with the two marks of Markdown that tables use: ``b`` and ``code``."""
    pieces = []
    for piece in re.split(r"(\*\*.+?\*\*|`.+?`)", text):
        if re.fullmatch(r"\*\*.+?\*\*", piece):
            pieces.append(("b", piece[2:-2]))
        elif re.fullmatch(r"`.+?`", piece):
            pieces.append(("code", piece[1:-1]))
        elif piece:
            pieces.append(("", piece))
    return pieces
