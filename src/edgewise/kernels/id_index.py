"""The number of each node by its name: a hash table over the names themselves, without copies.

Names are whole numbers, or words as Arrow stores them. Numbers that lie close together are places
of their own.
"""

from dataclasses import dataclass

import numpy as np

from edgewise.kernels import backend

_DENSE = 8  # places for each number, up to which no hash is needed


@dataclass(frozen=True, eq=False)
class Words:
    """Words one after the other."""

    start: np.ndarray  # the first byte of each, and the end of the last
    data: np.ndarray  # bytes

    def __len__(self) -> int:
        return len(self.start) - 1


class NumberIndex:
    """Finds whole numbers among different ones.

    ``repeated`` is the first that stands there twice, or -1.
    """

    def __init__(self, names: np.ndarray) -> None:
        self._low, self._high = int(names.min()), int(names.max())
        self._dense = self._high - self._low < _DENSE * len(names)
        self._names = names
        size = self._high - self._low + 1 if self._dense else _table_size(len(names))
        self._slots: np.ndarray = np.full(size, -1, dtype=_number_type(len(names)))
        with backend.running:
            if self._dense:
                self.repeated = int(_place(names, self._low, self._slots))
            else:
                self.repeated = int(_hash_numbers(names, self._slots))

    def find(self, wanted: np.ndarray) -> np.ndarray:
        """The place of each among the names; -1: it is none of them."""
        out = np.empty(len(wanted), dtype=self._slots.dtype)
        with backend.running:
            if self._dense:
                _find_placed(self._low, self._high, self._slots, wanted, out)
            else:
                _find_numbers(self._names, self._slots, wanted, out)
        return out


class WordIndex:
    """Finds words among different ones.

    ``repeated`` is the first that stands there twice, or -1.
    """

    def __init__(self, names: Words) -> None:
        self._names = names
        size = _table_size(len(names))
        self._slots: np.ndarray = np.full(size, -1, dtype=_number_type(len(names)))
        with backend.running:
            self.repeated = int(_hash_words(names.start, names.data, self._slots))

    def find(self, wanted: Words) -> np.ndarray:
        """The place of each among the names; -1: it is none of them."""
        out = np.empty(len(wanted), dtype=self._slots.dtype)
        names = self._names
        with backend.running:
            _find_words(names.start, names.data, self._slots, wanted.start, wanted.data, out)
        return out


def _number_type(count: int) -> type:
    return np.int32 if count < 2**31 else np.int64


def _table_size(count: int) -> int:
    """A power of two, at least twice the names, so that few of them meet."""
    return 1 << max(4, (2 * count - 1).bit_length())


@backend.jit()
def _place(names, low, slots):  # type: ignore[no-untyped-def]
    for i in range(len(names)):
        if slots[names[i] - low] >= 0:
            return i
        slots[names[i] - low] = i
    return -1


@backend.jit()
def _find_placed(low, high, slots, wanted, out):  # type: ignore[no-untyped-def]
    for k in range(len(wanted)):
        out[k] = slots[wanted[k] - low] if low <= wanted[k] <= high else -1


@backend.jit()
def _mixed(number):  # type: ignore[no-untyped-def]
    """The splitmix64 hash of a number."""
    value = np.uint64(number) + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@backend.jit()
def _slot_of_number(names, slots, wanted):  # type: ignore[no-untyped-def]
    """Where a number is in the table, or would be."""
    last = np.uint64(len(slots) - 1)
    slot = _mixed(wanted) & last
    while slots[slot] >= 0 and names[slots[slot]] != wanted:
        slot = (slot + np.uint64(1)) & last
    return slot


@backend.jit()
def _hash_numbers(names, slots):  # type: ignore[no-untyped-def]
    for i in range(len(names)):
        slot = _slot_of_number(names, slots, names[i])
        if slots[slot] >= 0:
            return i
        slots[slot] = i
    return -1


@backend.jit()
def _find_numbers(names, slots, wanted, out):  # type: ignore[no-untyped-def]
    for k in range(len(wanted)):
        out[k] = slots[_slot_of_number(names, slots, wanted[k])]


@backend.jit()
def _slot_of_word(start, data, slots, wanted, begin, end):  # type: ignore[no-untyped-def]
    """Where the word ``wanted[begin:end]`` is in the table, or would be."""
    value = np.uint64(0xCBF29CE484222325)  # FNV-1a, mixed once more at the end
    for k in range(begin, end):
        value = (value ^ np.uint64(wanted[k])) * np.uint64(0x100000001B3)
    last = np.uint64(len(slots) - 1)
    slot = _mixed(value) & last
    while slots[slot] >= 0:
        name = slots[slot]
        if start[name + 1] - start[name] == end - begin:
            same = True
            for k in range(end - begin):
                if data[start[name] + k] != wanted[begin + k]:
                    same = False
                    break
            if same:
                return slot
        slot = (slot + np.uint64(1)) & last
    return slot


@backend.jit()
def _hash_words(start, data, slots):  # type: ignore[no-untyped-def]
    for i in range(len(start) - 1):
        slot = _slot_of_word(start, data, slots, data, start[i], start[i + 1])
        if slots[slot] >= 0:
            return i
        slots[slot] = i
    return -1


@backend.jit()
def _find_words(start, data, slots, wanted_start, wanted, out):  # type: ignore[no-untyped-def]
    for k in range(len(out)):
        slot = _slot_of_word(start, data, slots, wanted, wanted_start[k], wanted_start[k + 1])
        out[k] = slots[slot]
