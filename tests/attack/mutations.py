"""Small damages to valid files: of bytes, of lines and cells, of JSON, of safetensors headers."""

import json
import random

WORDS = (
    *("", " ", '"', "'", '""', ",", ";", "\t", "\r", "\n", "\\", "\x00", "\ufeff", "é", "\u2028"),
    *("NaN", "nan", "inf", "-inf", "1e999", "-1e999", "1e308", "9" * 30, "9" * 400, "-1", "0"),
    *("2147483648", "9223372036854775808", "null", "None", "NULL", "?", "true", "3,5", ">5", "$5"),
    *("[", "]", "{", "}", "[" * 50, "{" * 50, "[" * 100_000, "a." * 5_000 + "a", "%s", "../.."),
    *("/", "=1+1", "<", "&", "<!DOCTYPE x>", "]]>", "C" * 300, "c1ccccc1", "[Na+", "\ud800"),
    "x" * 5_000,
)
SCALARS = (
    *(None, True, False, 0, -1, 1, 2, 0.5, 10**9, 10**18, 10**30, 10**400, 1e300, -1e300),
    *(float("nan"), float("inf"), "", "x", "NaN", "\ud800", "../x", "a\nb", 2**31, 2**63),
)
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp037")


def mutated(data, draw, *, text, noise=0.05):
    """Some bytes that are nearly ``data``, or nothing like it."""
    if draw.random() < noise:
        return draw.randbytes(draw.randrange(400))
    ways = [_flip, _cut, _remove, _repeat, _insert, _overwrite]
    if text:
        ways += [_lines, _lines, _cells, _cells, _word, _word, _recode, _ends]
    if _json(data) is not None:
        ways = [_change_json] * 12 + ways
    if data[8:9] == b"{":
        ways = [_change_header] * 6 + ways
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        data = draw.choice(ways)(data, draw)
    return data


def any_json(draw, depth=2):
    """Some JSON value, often a strange one."""
    kind = draw.randrange(12 if depth else 10)
    if kind < 6:
        return draw.choice(SCALARS)
    if kind < 8:
        return draw.choice(([], {}, [[]], [{}], [None], {"": None}, [1, "a"], [0] * 1000))
    if kind < 9:
        return draw.choice(WORDS[:40])
    if kind < 10:
        return draw.randrange(-100, 100)
    inner = [any_json(draw, depth - 1) for _ in range(draw.randrange(4))]
    return inner if kind == 10 else {draw.choice("abc"): value for value in inner}


def _place(data, draw):
    return draw.randrange(len(data) + 1)


def _flip(data, draw):
    if not data:
        return data
    changed = bytearray(data)
    changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _cut(data, draw):
    return data[: _place(data, draw)]


def _span(data, draw):
    start = _place(data, draw)
    return start, min(start + draw.choice((1, 2, 8, 64)), len(data))


def _remove(data, draw):
    start, end = _span(data, draw)
    return data[:start] + data[end:]


def _repeat(data, draw):
    start, end = _span(data, draw)
    return data[:end] + data[start:end] * draw.choice((1, 3, 50)) + data[end:]


def _insert(data, draw):
    at = _place(data, draw)
    return data[:at] + draw.randbytes(draw.choice((1, 2, 16))) + data[at:]


def _overwrite(data, draw):
    start, end = _span(data, draw)
    return data[:start] + draw.randbytes(end - start) + data[end:]


def _lines(data, draw):
    lines = data.split(b"\n")
    at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    match draw.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, lines[at])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines = lines[:1] + lines[at : at + 2]
    return b"\n".join(lines)


def _cells(data, draw):
    """Change a cell, or swap, repeat or lose a column of everything."""
    mark = b"\t" if b"\t" in data[:60] else b","
    rows = [line.split(mark) for line in data.split(b"\n")]
    row = draw.choice(rows)
    first, second = draw.randrange(len(rows[0])), draw.randrange(len(rows[0]))
    match draw.randrange(5):
        case 0 | 1:
            row[draw.randrange(len(row))] = _encoded(draw.choice(WORDS))
        case 2:
            for cells in rows:
                if max(first, second) < len(cells):
                    cells[first], cells[second] = cells[second], cells[first]
        case 3:
            for cells in rows:
                if first < len(cells):
                    cells.append(cells[first])
        case 4:
            for cells in rows:
                del cells[first : first + 1]
    return b"\n".join(mark.join(cells) for cells in rows)


def _word(data, draw):
    at = _place(data, draw)
    return data[:at] + _encoded(draw.choice(WORDS)) + data[at:]


def _recode(data, draw):
    text = data.decode("utf-8", "replace")
    return text.encode(draw.choice(ENCODINGS), "replace")


def _ends(data, draw):
    return data.replace(b"\n", draw.choice((b"\r\n", b"\r", b"\n\n", b"\x85")))


def _json(data):
    if data[:1] not in (b"{", b"["):
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _change_json(data, draw):
    content = _json(data)
    if content is None:
        return data
    holders = []
    waiting = [content]
    while waiting:
        here = waiting.pop()
        if here:
            holders.append(here)
        inner = here.values() if isinstance(here, dict) else here
        waiting += [value for value in inner if isinstance(value, dict | list)]
    if not holders or draw.random() < 0.05:
        content = any_json(draw)
    else:
        _change_one(draw.choice(holders), draw)
    return json.dumps(content).encode("utf-8")


def _change_one(holder, draw):
    key = draw.choice(list(holder)) if isinstance(holder, dict) else draw.randrange(len(holder))
    match draw.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[draw.choice(("x", "", "names", "kind"))] = holder.pop(key)
        case 2 if isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
            holder[key] = holder[key] * draw.choice((-1, 0, 2, 0.5, 10**9, 1e300))
        case 3 if isinstance(holder, list):
            holder.extend(list(holder) * draw.choice((1, 20)))
        case _:
            holder[key] = any_json(draw)


def _change_header(data, draw):
    """The JSON in front of a safetensors file, its length made right again."""
    size = int.from_bytes(data[:8], "little")
    if size > len(data):
        return data
    header = _change_json(data[8 : 8 + size].rstrip(), draw)
    return len(header).to_bytes(8, "little") + header + data[8 + size :]


def _encoded(word):
    return word.encode("utf-8", "surrogatepass")


def draw_for(seed, case):
    """The random numbers of one case, whatever ran before."""
    return random.Random(f"{seed}:{case}")
