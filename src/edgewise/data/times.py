"""When edges happened: columns of times, splits by time, stretches of time."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.data.splits import Split, fractions_of
from edgewise.data.tables import Table

STRETCHES = 20  # into which the edges of a table are cut
_NAMES = re.compile(r"(.*_)?(time|timestamp|date|datetime|when)(_.*)?", re.IGNORECASE)


def read_times(table: Table, name: str) -> np.ndarray:
    """Times as numbers: as they are, or seconds since 1970 of dates such as 2024-05-31 18:00."""
    table.require(name)
    values, word = table.parsed_numbers(name)
    values = _seconds(table, name) if word is not None else values
    gaps = np.isnan(values)
    if gaps.any():
        row = int(gaps.argmax())
        raise EdgewiseError(
            f"{table.where(row)}: column {name!r} holds no time here and in {int(gaps.sum())} "
            "row(s) in all; fill the cells with numbers, or with dates such as 2024-05-31 18:00"
        )
    return values


def time_columns(table: Table) -> list[str]:
    """The columns whose names speak of time."""
    return [name for name in table.columns if _NAMES.fullmatch(name)]


def split_by_time(times: np.ndarray, rows: Tensor, split: str) -> Split:
    """Earlier rows train, later ones validate, the last test; equal times are never parted.

    Args:
        times: When each row happened.
        rows: Those with a label.
        split: A name or three shares, as for a random split.
    """
    shares = fractions_of([float(s) for s in split.split(",")] if "," in split else split)
    numbers = rows.numpy()
    ordered = numbers[np.argsort(times[numbers], kind="stable")]
    when = times[ordered]
    cuts = []
    for share in (shares[0], shares[0] + shares[1]):
        place = min(max(round(share * len(ordered)), 0), len(ordered))
        if 0 < place < len(ordered):
            place = int(np.searchsorted(when, when[place - 1], side="right"))
        cuts.append(place)
    parts = np.split(ordered, cuts)
    names = ("training", "validation", "test")
    wanted = [name for name, share in zip(names, shares, strict=True) if share > 0]
    found = [name for name, part in zip(names, parts, strict=True) if len(part)]
    empty = [name for name in wanted if name not in found]
    if empty and len(ordered) > len(names):
        raise EdgewiseError(
            f"the {len(ordered):,} rows have {len(np.unique(when)):,} different times, and equal "
            f"times are not parted, so none is left for {' and '.join(empty)}; name a column of "
            "finer times, or say which rows are which with --split-column or a JSON file (--split)"
        )
    return Split(*(torch.from_numpy(np.sort(part)) for part in parts))


def stretch_starts(times: np.ndarray, split: Split | None = None) -> Tensor:
    """When each stretch of time starts: stretches of equally many rows, cut where a part begins."""
    ordered = np.sort(times)
    places = np.arange(1, STRETCHES) * len(ordered) // STRETCHES
    starts = [np.array([-np.inf]), ordered[places] if len(ordered) else places.astype(float)]
    for part in () if split is None else (split.validation, split.test):
        if len(part):
            starts.append(times[part.numpy()].min(keepdims=True))
    return torch.from_numpy(np.unique(np.concatenate(starts)))


def is_by_time(times: np.ndarray, split: Split) -> bool:
    """Whether no row of validation or test is earlier than one of training."""
    later = torch.cat([split.validation, split.test]).numpy()
    if not len(later) or not len(split.train):
        return True
    return bool(times[later].min() >= times[split.train.numpy()].max())


def _seconds(table: Table, name: str) -> np.ndarray:
    text = table.trimmed(name)
    gaps = pc.is_in(text, pa.array(sorted(table.missing)))
    text = pc.if_else(gaps, None, text)
    # With a zone all are moments; without one they are as a clock shows them. Never both.
    kinds = (pa.timestamp("us"), pa.timestamp("us", tz="UTC"))
    zoned = pc.match_substring_regex(text, r":\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)$")
    kind = kinds[bool(pc.any(zoned).as_py())]
    try:
        found = pc.cast(text, kind)
    except pa.ArrowInvalid as error:
        row = _first_unread(text, kind)
        raise EdgewiseError(
            f"{table.where(row)}: column {name!r} holds no times that can be read together: "
            f"{text[row].as_py()!r} is none like the others; give numbers, or dates such as "
            "2024-05-31 18:00, all of them with a zone (2024-05-31T18:00Z) or none"
        ) from error
    micro = pc.cast(found, pa.int64())
    return micro.to_numpy(zero_copy_only=False).astype(np.float64) / 1e6


def _first_unread(text: pa.ChunkedArray, kind: pa.DataType) -> int:
    """The first cell that is no time of a kind."""
    first, rows = 0, len(text)
    while rows > 1:  # of which at least one is not
        half = rows // 2
        try:
            pc.cast(text.slice(first, half), kind)
            first, rows = first + half, rows - half
        except pa.ArrowInvalid:
            rows = half
    return first
