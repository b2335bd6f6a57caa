"""A panel is found by its name; the page shows those that it is asked for, in order."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pages import Page, check_whole
from small_runs import KINDS, page

from edgewise.core.errors import EdgewiseError
from edgewise.core.registries import TASKS, UNITS
from edgewise.report import History, RunResults, make_report, panels
from edgewise.report.panels import PANELS, Panel, register_panel
from edgewise.report.rendering import environment
from edgewise.runs.folder import reopen


@pytest.fixture
def registry(monkeypatch):
    """Panels that a test registers are forgotten after it."""
    monkeypatch.setattr(panels, "PANELS", dict(PANELS))


@pytest.fixture
def remade(runs):
    """Makes the report of a folder with other arguments."""

    def make(kind, **others):
        run = runs[kind]
        model = run.model()
        return make_report(RunResults.from_folder(run, model.task), model, reopen(run), **others)

    return make


def test_the_page_shows_the_panels_it_is_asked_for_in_order(remade):
    parsed = check_whole(remade("nodes", panels=["settings", "metrics"]))
    titles = [value for tag, name, value in parsed.attributes if (tag, name) == ("section", "id")]
    assert titles == ["settings", "metrics"]


def test_a_blend_with_descriptors_is_told_beside_the_curves(runs):
    run = runs["regression"]
    model = run.model()
    results = RunResults.from_folder(run, model.task)
    for share, told in ((None, False), (0.25, True)):
        metrics = {k: v for k, v in results.metrics.items() if k != "descriptors_weight"}
        metrics |= {} if share is None else {"descriptors_weight": share}
        text = make_report(replace(results, metrics=metrics), model, reopen(run))
        assert ("0.75 of the network and 0.25 of a kernel regression" in text) == told


@pytest.mark.usefixtures("registry")
def test_a_new_panel_needs_a_name_and_its_content(remade):
    register_panel(
        Panel("coverage", "Coverage", lambda given: {"text": [f"{given.results.judged} <rows>"]})
    )
    register_panel(Panel("absent", "Absent", lambda _: None))
    words = Page(remade("regression", panels=["coverage", "absent"])).words
    assert "Coverage test <rows>" in words
    assert "Absent" not in words


@pytest.mark.usefixtures("registry")
def test_a_name_that_is_taken_or_unknown_is_a_sentence(remade):
    with pytest.raises(EdgewiseError, match="there is a panel 'metrics' already"):
        register_panel(PANELS["metrics"])
    with pytest.raises(EdgewiseError, match=r"no panel 'nothing'; choose from learning, "):
        remade("nodes", panels=["nothing"])


@pytest.mark.slow
def test_notices_are_shown_in_a_box_before_the_sections(remade):
    text = remade("nodes", notices=("3 molecules are in two subsets.", "a <b> c"))
    box, first = text.index('class="box notices"'), text.index("<section")
    assert box < first
    words = check_whole(text).words
    assert "Notices 3 molecules are in two subsets. a <b> c" in words
    assert "box notices" not in remade("nodes")


def test_every_template_of_a_panel_is_shipped():
    templates = environment(("edgewise.report",))
    for panel in PANELS.values():
        assert templates.get_template(panel.template).name == panel.template


def test_no_panel_asks_for_the_name_or_class_of_a_task_or_unit():
    things = [TASKS[name] for name in TASKS] + [type(UNITS[name]) for name in UNITS]
    classes = {thing.__name__ for thing in things}
    names = ("task.name", "unit.name")

    def asks(node):
        if isinstance(node, ast.Compare):
            sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
            return any(side.endswith(names) for side in sides)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            return bool(
                classes & {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            )
        return isinstance(node, ast.Match) and ast.unparse(node.subject).endswith(names)

    assert asks(ast.parse("given.results.task.name == 'regression'", mode="eval").body)
    assert asks(ast.parse("isinstance(task, Regression)", mode="eval").body)
    asked = [
        f"{path.name}:{node.lineno}"
        for path in Path(panels.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if asks(node)
    ]
    assert asked == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_results_in_memory_give_the_page_of_the_folder(runs, kind):
    run = runs[kind]
    model, opened = run.model(), reopen(run)
    problem = opened.problem
    prediction = model.predict(problem.data)
    stored = RunResults.from_folder(run, model.task)
    subset = np.full(len(problem.data.ids), "", dtype=object)
    for name, rows in problem.split.parts().items():
        subset[rows.numpy()] = name
    history = tuple(
        History(h.epoch, h.train_loss, h.validation_loss, h.validation_score, h.best)
        for h in stored.history
    )
    results = RunResults.from_arrays(
        run,
        model.task,
        history,
        list(problem.data.ids),
        subset.tolist(),
        problem.truth.numpy(),
        prediction.mean,
        prediction.deviation,
    )
    np.testing.assert_array_equal(results.predicted, stored.predicted)
    np.testing.assert_array_equal(results.truth, stored.truth)
    np.testing.assert_array_equal(results.std, stored.std)  # None is None
    assert make_report(results, model, opened) == page(run)


@pytest.mark.slow
def test_labels_of_a_logarithmic_axis_are_numbers(runs):
    """Matplotlib writes formulas there, which are not set."""
    run, model = runs["regression"], runs["regression"].model()
    results = RunResults.from_folder(run, model.task)
    losses = np.array([5.0, 1.0, 0.05])
    history = History(np.array([1, 2, 3]), losses, losses, losses, 3)
    text = make_report(replace(results, history=(history,)), model, reopen(run))
    assert ">0.1</text" in text
    assert "mathdefault" not in text
