"""What a reader wants first: what was learnt from what, and how well."""

from edgewise.report.blocks import Heading, ScoreCard
from edgewise.report.run_results import SUBSETS, RunResults
from edgewise.report.wording import LAYERS, METRICS, count, metric, shortened


def report_heading(results: RunResults) -> Heading:
    """Task and data, and the one metric of each subset."""
    run, members = results.run, len(results.history)
    layer = LAYERS.get(run.settings.model.layer, run.settings.model.layer)
    regime = run.settings.model.regime
    made = f"{layer}, preset {run.preset}" + (f", {members} members" if members > 1 else "")
    made += "" if regime == "given" else f", regime {regime}"
    return Heading(
        brand="Edgewise report",
        title=shortened(run.source.name, 80),
        subtitle=f"{results.task.describe()} · {made}",
        scores=[_score(results, subset) for subset in reversed(SUBSETS)],
    )


def _score(results: RunResults, subset: str) -> ScoreCard:
    name, several = results.task.headline, len(results.task.names)
    mean = f", mean of {several} {results.task.output_word}s" if several > 1 else ""
    return ScoreCard(
        label=f"{subset} {METRICS[name]}{mean}",
        value=metric(name, results.metrics[subset].get(name)),
        detail=count(len(results.rows(subset)), "row"),
        main=subset == results.judged,
    )
