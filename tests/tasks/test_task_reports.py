"""What a report asks of a task, checked row by row."""

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest

from edgewise.core.registries import TASKS
from edgewise.report.panels import PANELS
from edgewise.tasks import records
from edgewise.tasks.base import Prediction, Task
from edgewise.tasks.classification import Classification
from edgewise.tasks.multilabel import Multilabel
from edgewise.tasks.records import as_stored, numbers_of
from edgewise.tasks.regression import Regression

CLASSES = Classification(("kind",), ("a", "b", "c"))
LABELS = Multilabel(("x", "y"))
VALUES = Regression(("u", "v"))


@pytest.fixture
def classes():
    """Truth of three classes with unknown rows, and probabilities."""
    draw = np.random.default_rng(0)
    predicted = draw.dirichlet(np.ones(3), 40)
    return draw.integers(-1, 3, 40), predicted


@pytest.fixture
def labels():
    draw = np.random.default_rng(1)
    truth = draw.integers(0, 2, (40, 2)).astype(float)
    truth[draw.random((40, 2)) < 0.2] = np.nan
    return truth, draw.random((40, 2))


@pytest.fixture
def values():
    draw = np.random.default_rng(2)
    truth = draw.normal(size=(40, 2)) * (1, 100)
    truth[draw.random((40, 2)) < 0.2] = np.nan
    return truth, draw.normal(size=(40, 2)) * (1, 100)


def test_the_tasks_have_the_same_methods_and_panels_that_exist():
    def methods(task):
        return {
            name: tuple(inspect.signature(method).parameters)
            for name, method in inspect.getmembers(task, inspect.isroutine)
            if not name.startswith("_") and hasattr(Task, name)
        }

    asked = methods(Task)
    assert {"worst_errors", "embedding_groups", "read_columns"} <= set(asked)
    for task in (Task, *(TASKS[name] for name in TASKS)):
        assert methods(task) == asked
        assert set(task.panels) <= set(PANELS)
        assert len(set(task.panels)) == len(task.panels)


def test_what_a_report_is_given_needs_nothing_but_numpy():
    allowed = {"collections", "dataclasses", "numpy"}
    found = set()
    for node in ast.walk(ast.parse(Path(records.__file__).read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        found |= {name.split(".")[0] for name in names}
    assert found <= allowed


def test_tasks_are_described_in_the_words_of_the_field():
    assert CLASSES.describe() == "Classification of kind into 3 classes"
    assert LABELS.describe() == "Prediction of 2 binary labels: x, y"
    many = Regression(tuple("abcdef"))
    assert many.describe() == "Regression of a, b, c, d and 2 more"


def test_classes_and_labels_are_counted_among_known_rows(classes, labels):
    truth, _ = classes
    for k, count in enumerate(CLASSES.class_counts(truth)):
        assert count.positives == sum(t == k for t in truth)
        assert count.known == sum(t >= 0 for t in truth)
    truth, _ = labels
    for k, count in enumerate(LABELS.class_counts(truth)):
        assert count.positives == sum(t == 1 for t in truth[:, k])
        assert count.known == sum(t in (0, 1) for t in truth[:, k])
    assert VALUES.class_counts(truth) == ()


def test_statistics_are_those_of_known_values(values):
    truth, _ = values
    for k, found in enumerate(VALUES.value_statistics(truth)):
        known = sorted(t for t in truth[:, k] if t == t)
        assert (found.rows, found.minimum, found.maximum) == (len(known), known[0], known[-1])
        assert found.mean == pytest.approx(sum(known) / len(known))
        square = sum((t - found.mean) ** 2 for t in known) / len(known)
        assert found.std == pytest.approx(square**0.5)
    assert VALUES.value_statistics(np.full((3, 2), np.nan)) == ()


def test_binary_questions_hold_the_rows_whose_answer_is_known(classes, labels):
    truth, predicted = classes
    asked = CLASSES.binary_questions(truth, predicted)
    assert [question.name for question in asked] == ["a", "b", "c"]
    for k, question in enumerate(asked):
        pairs = [(p[k], t == k) for p, t in zip(predicted, truth, strict=True) if t >= 0]
        assert list(zip(question.probability, question.truth, strict=True)) == pairs
    truth, predicted = labels
    for k, question in enumerate(LABELS.binary_questions(truth, predicted)):
        rows = [i for i in range(len(truth)) if truth[i, k] == truth[i, k]]
        assert question.probability.tolist() == [predicted[i, k] for i in rows]
        assert question.truth.tolist() == [truth[i, k] == 1 for i in rows]


def test_two_classes_make_one_question_and_a_single_answer_makes_none():
    two = Classification(("kind",), ("no", "yes"))
    predicted = np.array([[0.3, 0.7], [0.6, 0.4]])
    (question,) = two.binary_questions(np.array([1, 0]), predicted)
    assert question.name == "yes"
    assert two.binary_questions(np.array([1, 1]), predicted) == ()


def test_calibration_is_of_the_predicted_class_or_of_each_label(classes, labels):
    truth, predicted = classes
    pairs = CLASSES.calibration_pairs(truth, predicted)
    known = [i for i in range(len(truth)) if truth[i] >= 0]
    assert pairs.probability.tolist() == [max(predicted[i]) for i in known]
    assert pairs.observed.tolist() == [truth[i] == np.argmax(predicted[i]) for i in known]
    truth, predicted = labels
    pairs = LABELS.calibration_pairs(truth, predicted)
    known = [(i, k) for i in range(len(truth)) for k in (0, 1) if truth[i, k] == truth[i, k]]
    assert pairs.probability.tolist() == [predicted[place] for place in known]
    assert pairs.observed.tolist() == [truth[place] == 1 for place in known]


def test_the_confusion_matrix_counts_pairs_of_true_and_predicted_class(classes):
    truth, predicted = classes
    slow = np.zeros((3, 3), dtype=int)
    for t, p in zip(truth, predicted, strict=True):
        if t >= 0:
            slow[t, np.argmax(p)] += 1
    np.testing.assert_array_equal(CLASSES.confusion(truth, predicted), slow)


def test_the_worst_errors_of_classes_are_wrong_rows_of_highest_probability(classes):
    truth, predicted = classes
    rows = np.arange(5, 40)
    found = CLASSES.worst_errors(truth, predicted, rows, 4)
    wrong = [i for i in rows if truth[i] >= 0 and np.argmax(predicted[i]) != truth[i]]
    worst = sorted(wrong, key=lambda i: -max(predicted[i]))[:4]
    assert [error.row for error in found] == worst
    for error in found:
        names = (CLASSES.classes[k] for k in error.class_numbers)
        assert (error.observed, error.predicted) == tuple(names)
        assert error.class_numbers == (truth[error.row], np.argmax(predicted[error.row]))
        assert error.size == max(predicted[error.row])


def test_the_worst_errors_of_labels_and_values_name_their_target(labels, values):
    rows = np.arange(40)
    truth, predicted = labels
    slow = [
        (abs(predicted[i, k] - truth[i, k]), i, LABELS.names[k])
        for i in rows
        for k in (0, 1)
        if abs(predicted[i, k] - truth[i, k]) > 0.5
    ]
    found = LABELS.worst_errors(truth, predicted, rows, 100)
    assert [(e.size, e.row, e.target) for e in found] == sorted(slow, reverse=True)
    assert {(e.observed, e.predicted) for e in found} == {
        ("negative", "positive"),
        ("positive", "negative"),
    }
    truth, predicted = values
    std = [np.std([t for t in truth[:, k] if t == t]) for k in (0, 1)]
    slow = [
        (abs(predicted[i, k] - truth[i, k]) / std[k], i, VALUES.names[k])
        for i in rows
        for k in (0, 1)
        if truth[i, k] == truth[i, k]
    ]
    found = VALUES.worst_errors(truth, predicted, rows, 6)
    assert [(e.row, e.target) for e in found] == [s[1:] for s in sorted(slow, reverse=True)[:6]]
    for error in found:
        assert error.size == error.predicted - error.observed


def test_every_row_with_a_known_truth_is_in_one_group_of_the_map(classes, labels, values):
    truth, _ = classes
    by, groups = CLASSES.embedding_groups(truth, 2, 7)
    assert by == "class"
    assert [group.role for group in groups] == ["background", "category", "category"]
    assert np.sum([group.members for group in groups], axis=0).tolist() == [1] * 40
    for group in groups[1:]:
        assert {CLASSES.classes[k] for k in truth[group.members]} == {group.name}
    truth, _ = labels
    by, (negative, positive) = LABELS.embedding_groups(truth, 8, 7)
    column = truth[:, LABELS.names.index(by)]
    assert (column == 1).sum() == max((truth == 1).sum(axis=0))
    assert set(column[negative.members]) == {0}
    assert set(column[positive.members]) == {1}
    truth, _ = values
    by, groups = VALUES.embedding_groups(truth, 8, 4)
    column = truth[:, VALUES.names.index(by)]
    assert np.sum([g.members for g in groups], axis=0).tolist() == (~np.isnan(column)).tolist()
    for group in groups:
        low, high = group.name
        assert ((column[group.members] >= low) & (column[group.members] <= high)).all()
    sizes = [group.members.sum() for group in groups]
    assert max(sizes) - min(sizes) <= 1


def test_values_that_are_all_alike_make_one_group():
    _, groups = VALUES.embedding_groups(np.ones((5, 2)), 8, 7)
    assert [group.members.tolist() for group in groups] == [[True] * 5]


def test_columns_of_predictions_are_read_back_with_either_name_of_the_deviation():
    cells = {"true": ("b", "", "a"), "p_a": ("0.25", "1", "0"), "p_b": ("0.5", "0", "1")}
    task = Classification(("kind",), ("a", "b"))
    truth, predicted, std = task.read_columns(cells)
    assert (truth.tolist(), std) == ([1, -1, 0], None)
    assert predicted.tolist() == [[0.25, 0.5], [1, 0], [0, 1]]
    for name in ("std", "spread"):
        *_, std = task.read_columns({**cells, name: ("1", "2", "3")})
        assert std.tolist() == [[1], [2], [3]]
        cells_2 = {"u_true": ("1", ""), "u_predicted": ("2", "3"), f"u_{name}": ("4", "5")}
        truth, predicted, std = Regression(("u",)).read_columns(cells_2)
        np.testing.assert_array_equal(truth, [[1], [np.nan]])
        assert (predicted.tolist(), std.tolist()) == ([[2], [3]], [[4], [5]])


def test_what_a_task_writes_is_what_it_reads(classes, labels, values):
    for task, (truth, predicted) in ((CLASSES, classes), (LABELS, labels), (VALUES, values)):
        truth, mean = (truth if truth.ndim == 1 else as_stored(truth)), as_stored(predicted)
        alone = task.compared_columns(Prediction(mean, None), truth)
        *_, std = task.read_columns(alone)
        assert std is None
        deviation = as_stored(np.abs(predicted) / 3)
        written = task.compared_columns(Prediction(mean, deviation), truth)
        expected = (truth, mean, task.shown_std(mean, deviation))
        for found, given in zip(task.read_columns(written), expected, strict=True):
            np.testing.assert_array_equal(found, given)


def test_of_an_ensemble_the_deviation_of_the_predicted_class_is_shown():
    predicted = np.array([[0.9, 0.1], [0.2, 0.8]])
    std = np.array([[1.0, 2.0], [3.0, 4.0]])
    task = Classification(("kind",), ("a", "b"))
    assert task.shown_std(predicted, std).tolist() == [[1], [4]]
    assert LABELS.shown_std(predicted, std) is std


@pytest.mark.parametrize("cell", ["1e39", "-1e300", "inf"])
def test_a_number_that_no_model_gives_is_refused(cell):
    with pytest.raises(ValueError, match="larger than any"):
        numbers_of(["0.5", cell])
