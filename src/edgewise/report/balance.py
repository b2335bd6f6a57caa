"""How many rows of each subset have each class or label, and how values are spread."""

import numpy as np

from edgewise.report.markup import Markup, element, table
from edgewise.report.results import SUBSETS, Results
from edgewise.report.wording import number, share


def balance_section(results: Results) -> Markup:
    """The share of each class or label in each subset, or how the values are spread."""
    if results.task.kind == "regression":
        return _value_spread(results)
    present = [name for name in SUBSETS if len(results.rows(name))]
    cells = []
    for k, name in enumerate(results.task.outputs):
        row: list[str] = [name]
        for subset in present:
            truth = results.truth[results.rows(subset)]
            if results.task.kind == "classification":
                positives, known = int((truth == k).sum()), int((truth >= 0).sum())
            else:
                positives, known = int((truth[:, k] > 0).sum()), int((~np.isnan(truth[:, k])).sum())
            row.append(_bar(positives, known))
        cells.append(row)
    what = "class" if results.task.kind == "classification" else "label"
    body = table((what, *present), cells, words=len(present) + 1, label=f"Rows of each {what}")
    return element("div", body, class_="balance")


def _bar(part: int, whole: int) -> Markup:
    of_all = part / whole if whole else 0.0
    bar = element("i", style=f"width:{100 * of_all:.1f}%")
    words = element("span", element("b", f"{part:,}"), f" {share(of_all)}")
    return element("span", words, element("span", bar, class_="track"), class_="bar")


def _value_spread(results: Results) -> Markup:
    cells = []
    for k, name in enumerate(results.task.names):
        for subset in SUBSETS:
            rows = results.known(results.rows(subset), k)
            if len(rows):
                v = results.truth[rows, k]
                told = (v.mean(), v.std(), v.min(), np.median(v), v.max())
                cells.append((name, subset, f"{len(v):,}", *(number(float(x)) for x in told)))
    header = ("target", "part", "rows", "mean", "spread", "least", "median", "most")
    return table(header, cells, words=2, label="Values in each part")
