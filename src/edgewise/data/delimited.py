"""Rows of delimited text exactly as they are written, each with its line, in bounded memory."""

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from edgewise.core.errors import EdgewiseError, preview

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
LONGEST = 2**24  # characters of a line or a cell; 131,072 of the csv module are too few
_MARKS = {
    "utf-8-sig": (codecs.BOM_UTF8,),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),  # begins like UTF-16's, so it comes first
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
_LINES_OF_A_CELL = 4  # from here on, lines that all look like rows are rows behind a stray quote


@dataclass(frozen=True)
class Row:
    """A row as it is written."""

    cells: list[str]
    line: int  # the one it ends on
    fault: str = ""  # why it is no row of the table


def resolved_encoding(stream: io.BufferedIOBase, path: str, encoding: str) -> str:
    """Python's name of an encoding, by the byte-order mark where there is one."""
    head = stream.read(4)
    stream.seek(0)
    for name, marks in _MARKS.items():
        if head.startswith(marks):
            return name
    try:
        found = codecs.lookup(encoding)
    except (LookupError, ValueError, TypeError) as error:
        raise _no_encoding(encoding) from error
    if not getattr(found, "_is_text_encoding", True):
        raise _no_encoding(encoding)
    if found.name in ("utf-16", "utf-32"):
        raise EdgewiseError(
            f"{path} has no byte-order mark, so {encoding} leaves the order of its bytes open; "
            f"set --encoding {found.name}-le or {found.name}-be"
        )
    return found.name


def rows_of_text(
    stream: io.BufferedIOBase, path: str, encoding: str, delimiter: str, *, lenient: bool = False
) -> Iterator[Row]:
    """The header, then every row; blank lines are none.

    Args:
        stream: Bytes, from their beginning; it can seek.
        path: For messages.
        encoding: Of the bytes; a byte-order mark is understood.
        delimiter: Between cells.
        lenient: Hand out a damaged row with its fault, in place of ending there. Damage that
            may have swallowed other rows ends the reading all the same.
    """
    if len(delimiter) != 1 or delimiter in '\r\n" ':
        raise EdgewiseError(f"the delimiter {delimiter!r} is not one character such as , ; or tab")
    lines = decoded_lines(stream, path, encoding, lenient=lenient)
    yield from _rows(lines, path, resolved_encoding(stream, path, encoding), delimiter, lenient)


def find_delimiter(stream: io.BufferedIOBase, path: str, encoding: str, expected: str) -> str:
    """What stands between cells: as the ending of the name says, but for one exception.

    Where a comma is the decimal point, programs write ``;`` between the cells of a ``.csv``: a
    header without a comma that has one is such a file. The stream is at its beginning again.
    """
    with suppress(EdgewiseError):  # told by those who read it
        header = next(decoded_lines(stream, path, encoding), "")
        if expected == "," and "," not in header and ";" in header:
            expected = ";"
    stream.seek(0)
    return expected


def decoded_lines(
    stream: io.BufferedIOBase, path: str, encoding: str, *, lenient: bool = False
) -> Iterator[str]:
    """The lines of a stream, none of them of any length; bytes of no text are a sentence."""
    encoding = resolved_encoding(stream, path, encoding)
    text = io.TextIOWrapper(  # type: ignore[type-var]
        stream, encoding, errors="surrogateescape" if lenient else "strict", newline=""
    )
    number = 0
    try:
        while line := text.readline(LONGEST):
            number += 1
            if len(line) == LONGEST:
                raise EdgewiseError(
                    f"{path}:{number}: the line is longer than {LONGEST:,} characters; this is "
                    "not a table, or its line ends are lost; check the file"
                )
            yield line
    except UnicodeError as error:
        raise _undecodable(stream, path, encoding) from error
    finally:
        with suppress(ValueError):  # where the stream, which is the caller's, is closed
            text.detach()


def check_header(header: Sequence[str], path: str) -> None:
    """Refuse a table whose columns cannot be told apart."""
    twice = sorted(name for name, count in Counter(header).items() if count > 1)
    if twice:
        raise EdgewiseError(f"{path}: column name(s) {preview(twice)} stand twice; rename them")


def _rows(
    lines: Iterator[str], path: str, encoding: str, delimiter: str, lenient: bool
) -> Iterator[Row]:
    csv.field_size_limit(LONGEST)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    width = before = 0
    while True:
        fault, cells = "", []
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            fault = f"{error}; look for a double quote that is not closed"
        line = reader.line_num
        if line - before > 1 and (fault or _looks_like_rows(cells, width, delimiter)):
            raise EdgewiseError(
                f"{path}:{before + 1}: a double quote opens a cell that goes on to line {line} and "
                f"takes {line - before - 1:,} line end(s) with it; close or remove the quote, and "
                "write one that belongs to a cell twice"
            )
        before = line
        if not fault and _is_blank(cells, width):
            continue
        if not width:
            if fault:
                raise EdgewiseError(f"{path}:{line}: the column names are damaged: {fault}")
            cells = [cell.strip() for cell in cells]
            check_header(cells, path)
            width = len(cells)
        else:
            cure = "" if fault else "; put cells that hold the delimiter in double quotes"
            fault = fault or _fault(cells, width, encoding if lenient else "")
            if fault and not lenient:
                raise EdgewiseError(f"{path}:{line}: {fault}{cure}")
        yield Row(cells, line, fault)
    if not width:
        raise EdgewiseError(f"{path} is empty; expected a header line with the column names")


def _looks_like_rows(cells: list[str], width: int, delimiter: str) -> bool:
    """Whether a row of several lines is rather several rows, with a stray quote before them.

    One column cannot tell, but neither ids nor SMILES have line ends; among several columns a
    text of some lines rarely has in each of them as many delimiters as a row.
    """
    if len(cells) != (width or len(cells)):
        return True
    width = len(cells)
    lines = [line for line in delimiter.join(cells).splitlines() if line.strip()]
    if len(lines) > 1 and width == 1:
        return True
    alike = all(line.count(delimiter) == width - 1 for line in lines)
    return len(lines) >= _LINES_OF_A_CELL and alike


def _is_blank(cells: list[str], width: int) -> bool:
    """Whether a line is empty: no row, unless the table has one column only."""
    return not cells or (len(cells) == 1 != width and not cells[0].strip())


def _fault(cells: list[str], width: int, encoding: str) -> str:
    if len(cells) != width:
        return f"{len(cells)} cells under {width} column names"
    if encoding and any("\udc80" <= c <= "\udcff" for cell in cells for c in cell):
        return f"bytes that are not {encoding.removesuffix('-sig')}"
    return ""


def _undecodable(stream: io.BufferedIOBase, path: str, encoding: str) -> EdgewiseError:
    """The sentence for bytes that are not of the encoding, with the line of the first."""
    stream.seek(0)
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    name = encoding.removesuffix("-sig")
    cure = "save the file as UTF-8, or set --encoding latin-1 if it comes from an old spreadsheet"
    try:
        while block := stream.read(2**16):
            line += decoder.decode(block).count("\n")
        decoder.decode(b"", True)
    except UnicodeDecodeError as error:
        line += error.object[: error.start].decode(error.encoding, "ignore").count("\n")
        byte = error.object[error.start]
        if "truncated" in error.reason:
            return EdgewiseError(
                f"{path}:{line}: the {name} text ends within a character; copy the file again"
            )
        return EdgewiseError(f"{path}:{line}: byte 0x{byte:02x} is not {name}; {cure}")
    except UnicodeError:
        pass
    return EdgewiseError(f"{path}:{line}: this is not {name}; {cure}")


def _no_encoding(encoding: str) -> EdgewiseError:
    return EdgewiseError(f"there is no encoding {encoding!r}; utf-8 and latin-1 are common")
