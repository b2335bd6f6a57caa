"""What a user's word for data means: a data set's name, tables of a graph, a file of molecules."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.catalogue import CATALOGUE
from edgewise.data.store import open_files


@dataclass(frozen=True)
class Source:
    """Where data come from.

    Args:
        form: ``"citation"`` or ``"molecules"`` (a data set by name), ``"folder"``, ``"tables"``,
            ``"graphml"``, ``"graph"`` (safetensors), or ``"molecule file"``.
        places: Its name, or its path or paths.
    """

    form: str
    places: tuple[str, ...]

    @property
    def kind(self) -> str:
        """``"nodes"`` or ``"molecules"``."""
        return "molecules" if self.form in ("molecules", "molecule file") else "nodes"

    @property
    def name(self) -> str:
        """A short name for a run."""
        first = Path(self.places[0])
        if self.form == "tables":
            return first.resolve().parent.name or first.stem
        return first.resolve().name.split(".")[0] or "run"

    def __str__(self) -> str:
        return " and ".join(self.places)

    def checksum(self) -> str:
        """SHA-256 of the bytes the data are read from."""
        digest = hashlib.sha256()
        if self.form in ("citation", "molecules"):
            for _, file in sorted(open_files(self.places[0]).items()):
                digest.update(file.data)
            return digest.hexdigest()
        try:
            for path in self.files():
                with path.open("rb") as stream:
                    while block := stream.read(2**20):
                        digest.update(block)
        except OSError as error:
            raise EdgewiseError(
                f"{error.filename} cannot be read ({error.strerror}); put the data back"
            ) from error
        return digest.hexdigest()

    def absolute(self) -> "Source":
        """The same source, findable from any folder."""
        if self.form in ("citation", "molecules"):
            return self
        return Source(self.form, tuple(str(Path(place).resolve()) for place in self.places))

    def files(self) -> list[Path]:
        """The user's own files that are read; none for a data set by name."""
        if self.form in ("citation", "molecules"):
            return []
        if self.form != "folder":
            return [Path(place) for place in self.places]
        folder = Path(self.places[0])
        tables = [p for p in folder.iterdir() if p.name.split(".")[0] in ("nodes", "edges")]
        return sorted(p for p in tables if p.is_file())

    def check_not_written(self, out: str | Path, flag: str) -> None:
        """Refuse an output that would take the place of a file that is read."""
        if Path(out).resolve() in [path.resolve() for path in self.files()]:
            raise EdgewiseError(f"{out} is the input itself; choose another {flag}")


def find_source(places: Sequence[str]) -> Source:
    """Tell what is meant: one name, folder or file, or a nodes table and an edges table."""
    if len(places) == 2:
        for place in places:
            if not _is(place, Path.is_file):
                raise EdgewiseError(
                    f"{place} is not a file; give a nodes table and an edges table, or one name"
                )
        return Source("tables", tuple(places))
    if len(places) != 1:
        raise EdgewiseError(
            f"data come from one place or two, not from {preview(list(places))}; give a data set's "
            "name, a folder, a nodes table and an edges table, or one file of molecules"
        )
    place = places[0]
    if place in CATALOGUE:
        return Source(CATALOGUE[place].kind, (place,))
    path = Path(place)
    if _is(place, Path.is_dir):
        return Source("folder", (place,))
    if _is(place, Path.is_file):
        # A pickle is no graph either, but the reader of graphs says what to do with it.
        graphs = dict.fromkeys((".safetensors", ".pt", ".pth", ".pkl", ".pickle"), "graph")
        form = {".graphml": "graphml", **graphs}.get(path.suffix.lower())
        return Source(form or "molecule file", (place,))
    raise EdgewiseError(
        f"{place} is neither a data set nor a file or folder; the data sets are "
        f"{', '.join(CATALOGUE)}, a graph is a folder with nodes.csv and edges.csv or those two "
        "files, molecules are one file"
    )


def _is(place: str, kind: Callable[[Path], bool]) -> bool:
    try:
        return kind(Path(place))
    except (OSError, ValueError):  # longer than a name can be, or with a null character
        return False
