"""Names of metrics, numbers and other words, as people write them."""

import math
import re
from collections.abc import Sequence

NOTHING = "\u2013"  # where there is no number
MINUS = "\u2212"
_RAISED = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)
METRICS = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "roc_auc": "ROC-AUC",
    "average_precision": "average precision",
    "log_loss": "log loss",
    "calibration_error": "calibration error",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
    "mrr": "mean reciprocal rank",
    "hits_at_1": "hits at 1",
    "hits_at_3": "hits at 3",
    "hits_at_10": "hits at 10",
    "type_accuracy": "accuracy of the likeliest type",
    "rows": "rows",
    "positives": "positives",
}
LAYERS = {"conv": "EGNN(C)", "attention": "EGNN(A)"}
SHARES = {"accuracy", "precision", "recall", "type_accuracy"}  # written in percent
# Characters that HTML cannot hold, not even escaped.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def plain(text: str) -> str:
    """The text without characters that an HTML file cannot hold."""
    return _FORBIDDEN.sub("\ufffd", text)


def shortened(text: str, length: int) -> str:
    """One line of at most ``length`` characters, without its middle if need be."""
    line = " ".join(plain(text).split())
    if len(line) <= length:
        return line
    # Names that begin alike often differ in their ends.
    end = length // 3
    return line[: length - 1 - end].rstrip() + "…" + line[-end:].lstrip()


def joints(text: str) -> list[str]:
    """The pieces of a name, cut where it may go on in the next line: behind its punctuation."""
    return re.split(r"(?<=\w[_./:\\-])(?=\w)", plain(text))


def metric(name: str, value: float | int | None) -> str:
    """A metric's value: shares in percent, counts whole, errors with three digits that count."""
    if value is None or math.isnan(value):
        return NOTHING
    if name in SHARES:
        return share(value)
    if name in ("rows", "positives"):
        return f"{int(value):,}"
    if name in ("rmse", "mae"):
        return number(value)
    return f"{value:.3f}".replace("-", MINUS)


def share(value: float) -> str:
    return f"{100 * value:.1f}\u00a0%"  # number and sign stay in one line


def number(value: float) -> str:
    """A value with about three digits that count, of whatever size."""
    if math.isnan(value):
        return NOTHING
    size = abs(value)
    if size and (size >= 1e6 or size < 1e-3):
        digits, power = f"{size:.2e}".split("e")
        text = f"{digits}\u00d710{str(int(power)).translate(_RAISED)}"
    elif size >= 1000:
        text = f"{size:,.0f}"
    else:
        text = f"{size:.{3 if size < 10 else 2 if size < 100 else 1}f}"
    return MINUS + text if value < 0 else text


def signed(value: float) -> str:
    """A difference, with its sign."""
    return f"{'+' if value > 0 else ''}{number(value)}"


def listed(numbers: Sequence[int]) -> str:
    """``12``, ``12 and 15``, ``12, 15 and 9``, or for many ``9 to 20``."""
    if len(numbers) > 6:
        return f"{min(numbers):,} to {max(numbers):,}"
    *first, last = (f"{n:,}" for n in numbers)
    return f"{', '.join(first)} and {last}" if first else last


def count(things: int, word: str, several: str = "") -> str:
    """``1 row``, ``2,708 rows``."""
    return f"{things:,} {word if things == 1 else several or word + 's'}"
