"""The paper's tables beside ours, and their forms: Markdown, CSV, terminal."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

from edgewise.data.citation import load_citation
from edgewise.paper.printed import (
    BASELINE,
    CITATION,
    MOLECULES,
    ROWS_2,
    ROWS_3,
    SPLITS,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    TITLES,
    Printed,
)
from edgewise.paper.results import Results
from edgewise.paper.summary import Cell, Difference, cell, difference

NOTHING = "none"
_PROTOCOL = {
    "fixed": "one fixed split, runs differ in their initial weights, as in the paper",
    "random": "another random split for each run",
}


@dataclass(frozen=True)
class Table:
    """A title, a header, rows of words, and what is to be said below."""

    name: str  # of its file
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        lines = [self.header, ("---", *("---:",) * (len(self.header) - 1)), *self.rows]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join([f"**{self.title}**", body, *self.notes])

    def csv(self) -> str:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows([self.header, *self.rows])
        return text.getvalue()


def table_1() -> Table:
    """The citation networks, counted as they are read."""
    counted = {dataset: _counts(dataset) for dataset in CITATION}
    rows = []
    for place, name in enumerate(("nodes", "edges", "node features", "classes")):
        cells = [name]
        for dataset in CITATION:
            ours, theirs = counted[dataset][place], TABLE_1[dataset][place]
            cells.append(f"{ours:,}" if ours == theirs else f"{ours:,} ({theirs:,})")
        rows.append(tuple(cells))
    note = (
        "In brackets what the paper prints, where it differs: its features stand one column too "
        "far to the right, and the files of CiteSeer and PubMed hold citations of papers without "
        "features and of papers by themselves, which are dropped."
    )
    header = ("", *(TITLES[dataset] for dataset in CITATION))
    return Table("table-1", "Table 1: the citation networks", header, tuple(rows), (note,))


def _counts(dataset: str) -> tuple[int, int, int, int]:
    graph, _ = load_citation(dataset)
    assert graph.class_names is not None
    return graph.num_nodes, graph.num_edges, graph.num_features, len(graph.class_names)


def table_2(results: Results, protocol: str, datasets: Sequence[str] = CITATION) -> Table:
    """Accuracy of every row, the paper's in brackets."""
    columns = [(dataset, split) for dataset in datasets for split in SPLITS]
    rows = []
    for row in ROWS_2:
        cells = [
            _accuracy(cell(results, "test", *column, protocol, row), TABLE_2[(row, *column)])
            for column in columns
        ]
        rows.append((row, *cells))
    counts = _runs(
        [cell(results, "test", *c, protocol, row).runs for c in columns for row in ROWS_2]
    )
    note = (
        f"Test accuracy in percent, mean and standard deviation over {counts}; "
        f"{_PROTOCOL[protocol]}. In brackets what the paper prints. `*`: weighted loss. Bold: no "
        "lower than the paper's mean less twice its standard deviation."
    )
    header = ("", *(f"{TITLES[dataset]} {split}" for dataset, split in columns))
    title = f"Table 2, {protocol} split{'s' if protocol == 'random' else ''}"
    return Table(f"table-2-{protocol}", title, header, tuple(rows), (note,))


def comparisons(results: Results, protocol: str, datasets: Sequence[str] = CITATION) -> Table:
    """What each row gains over its baseline, run by run."""
    columns = [(dataset, split) for dataset in datasets for split in SPLITS]
    rows = []
    for row, baseline in BASELINE.items():
        cells = [_gain(difference(results, *column, protocol, row)) for column in columns]
        rows.append((f"{row} over {baseline}", *cells))
    note = (
        "Percentage points of test accuracy, with the 95 % interval of the mean paired difference "
        f"(Student's t; same split, same seed); {_PROTOCOL[protocol]}. Bold: the interval leaves "
        "out zero."
    )
    header = ("", *(f"{TITLES[dataset]} {split}" for dataset, split in columns))
    title = f"Gain over the baseline, {protocol} split{'s' if protocol == 'random' else ''}"
    return Table(f"gains-{protocol}", title, header, tuple(rows), (note,))


def table_3(results: Results) -> Table:
    """Molecules: every row, the paper's in brackets."""
    columns = [(dataset, part) for dataset in MOLECULES for part in ("validation", "test")]
    rows = []
    for row in ROWS_3:
        cells = []
        for dataset, part in columns:
            found = cell(results, part, dataset, "molecules", "random", row)
            cells.append(_score(found, TABLE_3[row, dataset, part]))
        rows.append((row, *cells))
    counts = _runs(
        [
            cell(results, "test", dataset, "molecules", "random", row).runs
            for dataset in MOLECULES
            for row in ROWS_3
        ]
    )
    note = (
        f"Mean and standard deviation over {counts}, each with another random split (80/10/10). "
        "Tox21: mean ROC-AUC over 12 tasks; Lipophilicity and FreeSolv: RMSE. In brackets what the "
        "paper prints. (It says that Tox21 improved by more than 0.2; its table says 0.02.)"
    )
    header = ("", *(f"{TITLES[dataset]} {part}" for dataset, part in columns))
    return Table("table-3", "Table 3: molecules", header, tuple(rows), (note,))


def _accuracy(found: Cell, printed: Printed) -> str:
    shown = f"({printed.mean:.1f})"
    if not found.runs:
        return f"{NOTHING} {shown}"
    text = f"{100 * found.mean:.1f}" + _spread(100 * found.spread, 1)
    reached = 100 * found.mean >= printed.mean - 2 * printed.spread
    return f"{f'**{text}**' if reached else text} {shown}"


def _score(found: Cell, printed: Printed) -> str:
    shown = f"({printed.mean:.2f})"
    if not found.runs:
        return f"{NOTHING} {shown}"
    return f"{found.mean:.3f}{_spread(found.spread, 3)} {shown}"


def _spread(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f" ± {value:.{digits}f}"


def _gain(found: Difference) -> str:
    if math.isnan(found.mean):
        return NOTHING
    text = f"{100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
    return f"**{text}**" if found.certain else text


def _runs(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{high} runs" if low == high else f"{low} to {high} runs"
