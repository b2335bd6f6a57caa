"""How well each yes-or-no label is told."""

from edgewise.report.markup import Markup, table
from edgewise.report.results import Results
from edgewise.report.wording import METRICS, metric


def labels_section(results: Results) -> Markup:
    """A table of the labels."""
    scores = results.metrics[results.judged]["per_target"]
    columns = ("roc_auc", "average_precision", "accuracy", "log_loss", "positives", "rows")
    cells = [
        (name, *(metric(column, scores[name].get(column)) for column in columns))
        for name in results.task.names
    ]
    return table(("label", *(METRICS[c] for c in columns)), cells, label="Each label")
