"""Who trusts whom on Bitcoin OTC: ratings from -10 to 10, of which the negative ones matter."""

from edgewise.core.errors import EdgewiseError
from edgewise.data.catalogue import dataset
from edgewise.data.store import open_files
from edgewise.data.tables import Table, parse_text, table_from_columns

_NOTE = (
    "negative says whether a rating is below 0 (--target rating --task regression predicts the "
    "rating itself); when is learnt from only as --time-column when"
)


def read_ratings(
    name: str, targets: tuple[str, ...] = (), shown: tuple[str, ...] = ()
) -> tuple[Table, str, str]:
    """The ratings as a table of edges with one target, its name, and a note.

    The other target would give it away, so it is left out unless it is ``shown`` with labels.
    """
    data = dataset(name)
    target = targets[0] if targets else data.targets[0]
    if len(targets) > 1 or target not in data.targets:
        raise EdgewiseError(
            f"{name} has the targets {' and '.join(data.targets)}, one of which is predicted; "
            f"{list(targets)} are not"
        )
    file = open_files(name)["ratings"]
    cells = parse_text(b"source,target,rating,when\n" + file.data, str(file.path))
    columns = {name: cells.column(name) for name in ("source", "target")}
    rating = cells.column("rating")
    values = {"rating": rating, "negative": [str(int(int(cell) < 0)) for cell in rating]}
    kept = {column: values[column] for column in data.targets if column in (target, *shown)}
    table = {**columns, **kept, "when": cells.column("when")}
    return table_from_columns(table, str(file.path)), target, _NOTE
