"""What a reader wants first: what was learnt from what, and how well."""

from edgewise.report.markup import Markup, element, shortened, table
from edgewise.report.results import SUBSETS, Results
from edgewise.report.wording import METRICS, count, metric

NAMES = 4  # of targets, before it is enough


def headline(results: Results) -> Markup:
    """Task and data, and the one metric of each subset."""
    run, name = results.run, results.task.headline
    layer = {"conv": "EGNN(C)", "attention": "EGNN(A)"}[run.recipe.layer]
    members = len(results.history)
    made = f"{layer}, preset {run.preset}" + (f", {members} members" if members > 1 else "")
    scores = [_score(results, subset, name) for subset in reversed(SUBSETS)]
    return element(
        "div",
        element("p", "Edgewise report", class_="brand"),
        element("h1", shortened(run.source.name, 80)),
        element("p", f"{_task(results)} · {made}", class_="task"),
        element("div", *scores, class_="scores"),
    )


def _task(results: Results) -> str:
    task = results.task
    names = ", ".join(task.names[:NAMES])
    if len(task.names) > NAMES:
        names += f" and {len(task.names) - NAMES} more"
    if task.kind == "classification":
        return f"Classification of {names} into {count(len(task.classes), 'class', 'classes')}"
    if task.kind == "multilabel":
        return f"{count(len(task.names), 'yes-or-no label')}: {names}"
    return f"Regression of {names}"


def _score(results: Results, subset: str, name: str) -> Markup:
    rows, several = len(results.rows(subset)), len(results.task.names)
    kind = "labels" if results.task.kind == "multilabel" else "targets"
    mean = f", mean of {several} {kind}" if several > 1 else ""
    value = results.metrics[subset].get(name)
    return element(
        "div",
        element("span", f"{subset} {METRICS[name]}{mean}", class_="of"),
        element("strong", metric(name, value)),
        element("span", count(rows, "row"), class_="rows"),
        class_="score judged" if subset == results.judged else "score",
    )


def banner(results: Results) -> Markup:
    """A word of warning where there is something to warn of."""
    if results.metrics["finished"]:
        return Markup("")
    epochs = sum(results.metrics["epochs"])
    return element(
        "p",
        element("b", "This run was interrupted."),
        f" The results are those of the best weights of {count(epochs, 'epoch')}. Finish it with ",
        element("code", f"edgewise train --resume {results.run.folder}"),
        class_="warning",
    )


def metrics_table(results: Results) -> Markup:
    """Every metric of every subset."""
    present = [name for name in reversed(SUBSETS) if len(results.rows(name))]
    names = list(
        dict.fromkeys(
            name
            for subset in present
            for name, value in results.metrics[subset].items()
            if not isinstance(value, dict)
        )
    )
    # Several targets: a row counts once for each that is known.
    several = len(results.task.names) > 1
    words = {**METRICS, "rows": "known values" if several else "rows"}
    cells = [
        (words.get(name, name), *(metric(name, results.metrics[s].get(name)) for s in present))
        for name in names
    ]
    body = table(("metric", *present), cells, label="All metrics")
    return element("div", body, class_="narrow")
