"""The paper's tables beside ours, as Markdown and CSV."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgewise.paper.networks import Size
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
from edgewise.paper.result_store import ResultStore
from edgewise.paper.summary import Cell, Difference, cell, difference, reached
from edgewise.report.wording import count

NOTHING = "none"
PROTOCOL = {
    "fixed": "one fixed split, runs differ in their initial weights, as in the paper",
    "random": "another random split for each run",
}

PROTOCOL_3 = {
    "fixed": "one fixed split, runs differ in their initial weights",
    "random": "another random split for each run, as MoleculeNet does",
}
TITLE_3 = {
    "fixed": ("table-3-fixed", "Table 3 on one fixed split"),
    "random": ("table-3", "Table 3: molecules"),
}


@dataclass(frozen=True)
class PaperTable:
    """A title, a header, rows of words, and notes below; ``**`` marks bold words."""

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
        plain = [[cell.replace("**", "") for cell in row] for row in self.rows]
        csv.writer(text, lineterminator="\n").writerows([self.header, *plain])
        return text.getvalue()


def table_1(sizes: Mapping[str, Size]) -> PaperTable:
    """The citation networks that could be read, counted as they are read."""
    datasets = [dataset for dataset in CITATION if dataset in sizes]
    rows = []
    for place, name in enumerate(("nodes", "edges", "node features", "classes")):
        cells = [name]
        for dataset in datasets:
            ours, theirs = sizes[dataset][place], TABLE_1[dataset][place]
            cells.append(f"{ours:,}" if ours == theirs else f"{ours:,} ({theirs:,})")
        rows.append(tuple(cells))
    note = (
        "In brackets what the paper prints, where it differs: its features stand one column too "
        "far to the right, and the files of CiteSeer and PubMed hold citations of papers without "
        "features and of papers by themselves, which are dropped."
    )
    header = ("", *(TITLES[dataset] for dataset in datasets))
    return PaperTable("table-1", "Table 1: the citation networks", header, tuple(rows), (note,))


def table_2(
    results: ResultStore,
    protocol: str,
    datasets: Sequence[str] = CITATION,
    shown: Sequence[str] = ROWS_2,
) -> PaperTable:
    """Accuracy of the rows, the paper's in brackets."""
    columns = [(dataset, split) for dataset in datasets for split in SPLITS]
    rows = []
    for row in shown:
        cells = [
            _accuracy(cell(results, "test", *column, protocol, row), TABLE_2[(row, *column)])
            for column in columns
        ]
        rows.append((row, *cells))
    counts = _runs(
        [cell(results, "test", *c, protocol, row).runs for c in columns for row in shown]
    )
    star = " `*`: weighted loss." if any(row.endswith("*") for row in shown) else ""
    note = (
        f"Test accuracy in percent, mean and standard deviation over {counts}; "
        f"{PROTOCOL[protocol]}. In brackets what the paper prints.{star} Bold: no lower than the "
        "paper's mean less twice its standard deviation."
    )
    header = ("", *(f"{TITLES[dataset]} {split}" for dataset, split in columns))
    title = f"Table 2, {protocol} split{'s' if protocol == 'random' else ''}"
    return PaperTable(f"table-2-{protocol}", title, header, tuple(rows), (note,))


def comparisons(
    results: ResultStore, protocol: str, datasets: Sequence[str] = CITATION
) -> PaperTable:
    """What each row gains over its baseline, run by run."""
    columns = [(dataset, split) for dataset in datasets for split in SPLITS]
    rows = []
    for row, baseline in BASELINE.items():
        cells = [_gain(difference(results, *column, protocol, row)) for column in columns]
        rows.append((f"{row} over {baseline}", *cells))
    note = (
        "Percentage points of test accuracy, with the 95 % interval of the mean paired difference "
        f"(Student's t; same split, same seed); {PROTOCOL[protocol]}. A single run has no "
        "interval. Bold: the interval leaves out zero."
    )
    header = ("", *(f"{TITLES[dataset]} {split}" for dataset, split in columns))
    title = f"Gain over the baseline, {protocol} split{'s' if protocol == 'random' else ''}"
    return PaperTable(f"gains-{protocol}", title, header, tuple(rows), (note,))


def table_3(
    results: ResultStore, datasets: Sequence[str] = MOLECULES, protocol: str = "random"
) -> PaperTable:
    """Molecules: every row, the paper's in brackets."""
    columns = [(dataset, part) for dataset in datasets for part in ("validation", "test")]

    def found(dataset: str, part: str, row: str) -> Cell:
        return cell(results, part, dataset, "molecules", protocol, row)

    rows = [
        (row, *(_score(found(d, part, row), TABLE_3[row, d, part]) for d, part in columns))
        for row in ROWS_3
    ]
    counts = _runs([found(dataset, "test", row).runs for dataset in datasets for row in ROWS_3])
    labelled = [f"{TITLES[d]}: mean ROC-AUC over 12 tasks" for d in datasets if d == "tox21"]
    measured = [TITLES[d] for d in datasets if d != "tox21"]
    metrics = "; ".join([*labelled, *([f"{' and '.join(measured)}: RMSE"] if measured else [])])
    slip = " (It says that Tox21 improved by more than 0.2; its table says 0.02.)"
    note = (
        f"Mean and standard deviation over {counts}; {PROTOCOL_3[protocol]} (80/10/10). "
        f"{metrics}. In brackets what the paper prints.{slip if labelled else ''}"
    )
    header = ("", *(f"{TITLES[dataset]} {part}" for dataset, part in columns))
    name, title = TITLE_3[protocol]
    return PaperTable(name, title, header, tuple(rows), (note,))


def _accuracy(found: Cell, printed: Printed) -> str:
    shown = f"({printed.mean:.1f})"
    if not found.runs:
        return f"{NOTHING} {shown}"
    text = f"{100 * found.mean:.1f}" + _std(100 * found.std, 1)
    return f"{f'**{text}**' if reached(found, printed) else text} {shown}"


def _score(found: Cell, printed: Printed) -> str:
    shown = f"({printed.mean:.2f})"
    if not found.runs:
        return f"{NOTHING} {shown}"
    return f"{found.mean:.3f}{_std(found.std, 3)} {shown}"


def _std(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f" ± {value:.{digits}f}"


def _gain(found: Difference) -> str:
    if math.isnan(found.mean):
        return NOTHING
    mean, low, high = (_points(value) for value in (found.mean, found.low, found.high))
    if math.isnan(found.low):
        return mean
    text = f"{mean} [{low}, {high}]"
    return f"**{text}**" if found.certain else text


def _points(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f}"  # zero has no minus


def _runs(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return count(high, "run") if low == high else f"{low} to {high} runs"
