"""Metrics of each class, binary label or target, as a table."""

from edgewise.report.blocks import TableData
from edgewise.report.run_results import RunResults
from edgewise.report.wording import METRICS, metric


def output_table(results: RunResults, title: str = "") -> TableData:
    """A row for each class, label or target of the judged subset."""
    view = results.task
    columns = view.output_metrics
    scores = results.metrics[results.judged].get(view.per_output, {})
    rows = [
        (name, *(metric(column, scores.get(name, {}).get(column)) for column in columns))
        for name in results.task.outputs
    ]
    header = (view.output_word, *(METRICS[column] for column in columns))
    return TableData(f"Each {view.output_word}", header, rows, title=title)
