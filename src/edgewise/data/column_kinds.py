"""What a column holds, by its cells: numbers, categories or text; and what is rather a slip."""

import numpy as np

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.cells import as_number, looks_like_a_number
from edgewise.data.tables import Table

MOST_WORDS = 2**20  # different ones that are remembered of a column
_WORDS_IN_A_TEXT = 3  # a column with more words than this per cell is text
_MOST_CATEGORIES = 100


class WordCounts:
    """What the words of a column look like, counted some rows at a time."""

    def __init__(self) -> None:
        self.words: dict[str, None] = {}  # that are different, up to so many
        self.cells = 0  # that hold something
        self.words_in_cells = 0
        self.not_numbers = 0  # cells
        self.like_numbers = 0  # cells that hold a number, or what a person would take for one
        self.fractions = False  # whether a number is not whole
        # The first cells, with their rows, that are no number, and that only look like one.
        self.odd: tuple[int, str] | None = None
        self.alike: tuple[int, str] | None = None

    def add(self, table: Table, name: str, before: int = 0) -> None:
        """Count the cells of a table, which has so many rows before it."""
        codes, words = table.categories(name)
        count = np.bincount(codes[codes >= 0], minlength=len(words))
        value = [as_number(word, table.decimal, table.missing) for word in words]
        number = np.array([v is not None for v in value], dtype=bool)
        alike = np.array(
            [v is None and looks_like_a_number(w) for v, w in zip(value, words, strict=True)], bool
        )
        self.cells += int(count.sum())
        self.words_in_cells += int(
            sum(len(w.split()) * n for w, n in zip(words, count, strict=True))
        )
        self.not_numbers += int(count[~number].sum())
        self.like_numbers += int(count[number | alike].sum())
        self.fractions |= any(v is not None and not v.is_integer() for v in value)
        self.words.update(dict.fromkeys(words[: max(0, MOST_WORDS - len(self.words))]))
        self.odd = self.odd or _first(codes, words, ~number, before)
        self.alike = self.alike or _first(codes, words, alike, before)


def guess_kind(table: Table, name: str) -> str:
    """``numbers``, ``categories`` or ``text``, by what the cells hold."""
    if table.parsed_numbers(name)[1] is None:
        return "numbers"
    return kind_of_words(word_counts(table, name), table, name)


def kind_of_words(counts: WordCounts, table: Table, name: str) -> str:
    """``categories`` or ``text``; what is neither, or numbers with slips among them, is refused."""
    refuse_slips(counts, table, name)
    if counts.words_in_cells / counts.cells > _WORDS_IN_A_TEXT:
        return "text"
    if len(counts.words) <= _MOST_CATEGORIES:
        return "categories"
    raise EdgewiseError(
        f"{table.path}: column {name!r} holds {len(counts.words)} different words, such as "
        f"{preview(sorted(counts.words), limit=3)}; say how to read it: as categories, as text, or "
        "not at all (ignore)"
    )


def word_counts(table: Table, name: str) -> WordCounts:
    """What the words of a column look like."""
    counts = WordCounts()
    counts.add(table, name)
    return counts


def check_words(table: Table, name: str, *, slips: bool = True) -> None:
    """Refuse words that look like numbers or, as ``slips``, a few words among numbers."""
    refuse_slips(word_counts(table, name), table, name, slips=slips)


def refuse_slips(counts: WordCounts, table: Table, name: str, *, slips: bool = True) -> None:
    """The same for words that were counted before; ``table`` says where they stand."""
    odd, half = counts.not_numbers, 2 * counts.like_numbers >= counts.cells
    slipped = slips and (10 * odd <= counts.cells or (half and counts.fractions))
    strange = counts.alike or counts.odd
    if strange is None or not (slipped or (half and counts.alike)):
        return
    row, cell = strange
    comma = table.decimal == "." and as_number(cell, ",") is not None
    decimal = "say --decimal , if commas are decimal points, " if comma else ""
    numbers = odd < counts.cells
    elsewhere = ", and numbers elsewhere" if numbers else ", which looks like a number"
    raise EdgewiseError(
        f"{table.where(row)}: column {name!r} holds {cell!r}{elsewhere}; {decimal}correct or empty "
        f"the cell and {odd - 1} more like it, or declare the column to hold categories "
        f"(--categories {name})"
    )


def _first(
    codes: np.ndarray, words: tuple[str, ...], chosen: np.ndarray, before: int
) -> tuple[int, str] | None:
    """The first row that holds one of some words, and the word."""
    found = np.isin(codes, np.nonzero(chosen)[0])
    if not found.any():
        return None
    row = int(found.argmax())
    return before + row, words[codes[row]]
