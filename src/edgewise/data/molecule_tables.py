"""Molecules with their measurements from CSV, TSV, Parquet and SDF files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.files import write_atomically
from edgewise.core.spreadsheet import csv_text
from edgewise.data.catalogue import dataset
from edgewise.data.chemistry import MoleculeCodes, read_smiles
from edgewise.data.graph_rows import InvalidRow
from edgewise.data.sdf import sdf_names, sdf_rows
from edgewise.data.store import open_files
from edgewise.data.tables import Table, open_binary, parse_text, read_table, table_from_columns
from edgewise.kernels.memory import memory_limit

ON_INVALID = ("error", "skip")
_MOLECULE = 1024  # bytes of a molecule of ordinary size, as read and featurised
_SMILES_NAMES = ("smiles", "canonical_smiles", "isomeric_smiles", "mol", "structure")


@dataclass(frozen=True)
class MoleculeTable:
    """The rows of a file before RDKit has seen them."""

    table: Table
    smiles: tuple[str, ...]
    targets: tuple[str, ...] = ()  # columns to predict, where a data set says so

    def __len__(self) -> int:
        return len(self.smiles)


def read_molecules(
    path: str | Path,
    *,
    smiles: str | None = None,
    usual: str = "",
    encoding: str = "utf-8",
    delimiter: str | None = None,
    decimal: str = ".",
    missing_values: Sequence[str] = (),
) -> MoleculeTable:
    """Read a file of molecules: a table with a SMILES column, or an SDF with structures.

    Args:
        path: ``.csv``, ``.tsv``, ``.sdf`` (also gzipped) or ``.parquet``.
        smiles: The column that holds SMILES; without it ``usual`` or, where the file has no such
            column, one that is called so.
        usual: See there.
        encoding: Of text files.
        delimiter: Between cells, where the ending of the name does not say it.
        decimal: The decimal point of numbers in text files.
        missing_values: Words that stand for missing, beside the usual ones.
    """
    if is_sdf(path):
        table = _read_sdf(Path(path), encoding, decimal, missing_values)
    else:
        table = read_table(
            path,
            encoding=encoding,
            delimiter=delimiter,
            decimal=decimal,
            missing_values=missing_values,
        )
    if len(table) * _MOLECULE > memory_limit():
        raise EdgewiseError(
            f"{path} holds {len(table):,} rows, about {len(table) * _MOLECULE / 2**30:,.0f} GiB as "
            "molecules, more than memory allows; split the file, or raise EDGEWISE_MEMORY_GB"
        )
    return molecule_table(table, smiles=smiles or "", usual=usual)


def molecule_table(
    table: Table, *, smiles: str = "", usual: str = "", targets: Sequence[str] = ()
) -> MoleculeTable:
    """The rows of a table that has a column of SMILES, see :func:`smiles_column`."""
    column = smiles_column(table, smiles, usual)
    cells = tuple(cell.strip() for cell in table.column(column))
    return MoleculeTable(table, cells, tuple(targets))


def read_named(name: str) -> MoleculeTable:
    """Read ``tox21``, ``lipo`` or ``freesolv``, fetched and verified first if need be."""
    data = dataset(name)
    if data.kind != "molecules":
        raise EdgewiseError(
            f"{data.name} is not a set of molecules; load it with "
            f"edgewise.data.sources.find_source([{data.name!r}])"
        )
    file = open_files(data.name)["table"]
    table = parse_text(file.data, str(file.path))
    return molecule_table(table, smiles=data.smiles, targets=data.targets)


def read_structures(
    source: MoleculeTable,
    *,
    on_invalid: str = "error",
    workers: int = 1,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> tuple[MoleculeCodes, tuple[InvalidRow, ...]]:
    """Read all structures of a table; say which rows have none, or refuse them.

    Args:
        source: The table.
        on_invalid: ``"error"`` refuses the file at the first bad row; ``"skip"`` leaves bad rows
            out and lists them.
        workers: Number of worker processes.
        progress: Called with a title, the rows done and the rows in all.
    """
    if on_invalid not in ON_INVALID:
        raise EdgewiseError(
            f"on_invalid={on_invalid!r} is not known; choose one of {', '.join(ON_INVALID)}"
        )
    codes = read_smiles(source.smiles, workers=workers, progress=progress)
    invalid = tuple(
        InvalidRow(row, int(source.table.lines[row]), smiles, reason)
        for row, smiles, reason in codes.invalid
    )
    if invalid and on_invalid == "error":
        first = invalid[0]
        raise EdgewiseError(
            f"{source.table.where(first.row)}: {first.smiles!r}: {first.reason}; {len(invalid)} "
            f"such row(s), on line(s) {preview([entry.line for entry in invalid])}, must be "
            "corrected, or left out with --on-invalid skip"
        )
    if not len(codes):
        raise EdgewiseError(f"{source.table.path} holds no molecule that can be read")
    return codes, invalid


def left_out(invalid: Sequence[InvalidRow], rows: int) -> str:
    """A sentence on the bad rows of so many."""
    lines = preview([entry.line for entry in invalid])
    return f"{len(invalid)} of {rows} rows cannot be read and are left out: {lines}"


def write_invalid(path: str | Path, invalid: Sequence[InvalidRow]) -> None:
    """List the bad rows in a CSV file: row, line, SMILES, reason."""
    columns = {
        "row": [str(entry.row) for entry in invalid],
        "line": [str(entry.line) for entry in invalid],
        "smiles": [entry.smiles for entry in invalid],
        "reason": [entry.reason for entry in invalid],
    }
    write_atomically(path, csv_text(columns))


def is_sdf(path: str | Path) -> bool:
    """Whether a file holds structures, not a table of SMILES."""
    return str(path).lower().endswith((".sdf", ".sdf.gz"))


def smiles_column(table: Table, named: str = "", usual: str = "") -> str:
    """The column that is named, else the usual one if it is there, else one called like SMILES.

    That of an SDF is made from its structures.
    """
    if is_sdf(table.path):
        return "smiles"
    return named or (usual if usual in table.columns else _guessed(table))


def _guessed(table: Table) -> str:
    found = [name for name in table.columns if name.lower() in _SMILES_NAMES]
    if len(found) != 1:
        raise EdgewiseError(
            f"{table.path}: {'several columns look' if found else 'no column looks'} like SMILES "
            f"among {preview(list(table.columns), limit=12)}; name it by smiles_column, or "
            "give the tables of nodes and of edges if this is one of them"
        )
    return found[0]


def _read_sdf(path: Path, encoding: str, decimal: str, missing_values: Sequence[str]) -> Table:
    """Structures as SMILES beside their properties; an unreadable one gets an empty cell."""
    with open_binary(path) as stream:
        names = sdf_names(stream, str(path), encoding)
        rows = list(sdf_rows(stream, str(path), encoding))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return table_from_columns(columns, str(path), decimal=decimal, missing_values=missing_values)
