"""Molecules of the user's own: a table or an SDF, or a folder with the parts of one table."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from edgewise.core.declarations import DataSettings
from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import OF_MOLECULES
from edgewise.data.delimited import DELIMITERS
from edgewise.data.graph_rows import GraphRows, GraphStretch
from edgewise.data.molecule_rows import MoleculeRows, read_stretch, stream_parts
from edgewise.data.molecule_tables import molecule_table, read_molecules
from edgewise.data.source import MOLECULES, TEXT, Source, as_text
from edgewise.data.streams import Stretch
from edgewise.data.tables import make_table, read_table

_ENDINGS = (*DELIMITERS, *(f"{ending}.gz" for ending in DELIMITERS), ".parquet")


class MoleculeFileSource(Source):
    """Molecules in a table or an SDF."""

    form, described, unit = "molecule file", "a file of molecules", "graph"
    settings = MOLECULES | TEXT | {"smiles_column", "categories"}
    implied: ClassVar[Mapping[str, Any]] = OF_MOLECULES
    id_name, row_view, by_rows = "smiles", "structures", True

    def read_graphs(self, settings: DataSettings, usual: str = "") -> GraphRows:
        named, text = settings.smiles_column or None, as_text(settings)
        return MoleculeRows(read_molecules(self.places[0], smiles=named, usual=usual, **text))

    def stream_graphs(self, settings: DataSettings, usual: str = "") -> Iterator[GraphStretch]:
        return (read_stretch(s, settings, usual) for s in self.stream_rows(settings))

    def stream_rows(self, settings: DataSettings) -> Iterator[Stretch]:
        return stream_parts(self.files(), settings)

    def read_stretch(self, stretch: Stretch, settings: DataSettings, usual: str) -> GraphStretch:
        return read_stretch(stretch, settings, usual)


class MoleculePartsSource(MoleculeFileSource):
    """Molecules in a table whose rows lie in several files of a folder."""

    form, described = "molecule parts", "a folder with parts of a table of molecules"

    def files(self) -> list[Path]:
        return parts_of(self.places[0])

    def read_graphs(self, settings: DataSettings, usual: str = "") -> GraphRows:
        tables = [read_table(path, **as_text(settings)) for path in self.files()]
        names = list(tables[0].columns)
        for table in tables:
            check_same_columns(names, list(table.columns), table.path)
        columns = {name: tuple(c for t in tables for c in t.column(name)) for name in names}
        text = {name: value for name, value in as_text(settings).items() if name != "encoding"}
        table = make_table(self.places[0], columns, None, **text)
        return MoleculeRows(molecule_table(table, smiles=settings.smiles_column, usual=usual))


def parts_of(folder: str | Path) -> list[Path]:
    """The tables in a folder, by name; files that begin with a dot or ``_`` are no parts."""
    found = [path for path in Path(folder).iterdir() if path.name[0] not in "._"]
    return sorted(path for path in found if path.name.lower().endswith(_ENDINGS))


def parts_folder(place: str) -> Source | None:
    """The source of a folder that holds parts of a table, and nothing else."""
    others = [path for path in Path(place).iterdir() if path.name[0] not in "._"]
    return MoleculePartsSource((place,)) if others and sorted(others) == parts_of(place) else None


def check_same_columns(first: list[str], these: list[str], path: str) -> None:
    """Refuse parts of a table whose columns differ."""
    if first != these:
        differing = sorted({*first} ^ {*these}) or these
        raise EdgewiseError(
            f"{path} has other columns than the first part of the table ({', '.join(differing)}); "
            "give parts with the same columns in the same order"
        )
