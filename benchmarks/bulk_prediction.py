"""Are many molecules predicted through Ray in their order, in memory that does not grow?

    python benchmarks/bulk_prediction.py --rows 1000000 --workers 2

SMILES of Lipophilicity, drawn with repetition, one in a thousand of them broken, go through
`edgewise predict --engine ray` into a folder of Parquet. Memory is the resident set of each process
of the command, sampled while rows are written; "grew by" compares the last fifth of the rows with
the second tenth and the third, for caches fill in the first. Writes
benchmarks/results/bulk_prediction.json.
"""

import argparse
import json
import os
import random
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from edgewise import runs
from edgewise.data.molecule_tables import read_named

RESULTS = Path(__file__).parent / "results" / "bulk_prediction.json"
SETTINGS = {"epochs": 5, "hidden": 32, "descriptors": "none"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        smiles = read_named("lipo").smiles
        (folder / "train.csv").write_text(
            "smiles,y\n" + "".join(f"{s},{len(s)}.5\n" for s in smiles[:300])
        )
        run = runs.train(str(folder / "train.csv"), folder / "run", target="y", **SETTINGS)
        write_molecules(folder / "in", smiles, asked.rows)
        result = {
            "rows": asked.rows,
            "workers": asked.workers,
            **measured(run.folder, folder, asked),
        }
    before = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    kept = [one for one in before if (one["rows"], one["workers"]) != (asked.rows, asked.workers)]
    RESULTS.write_text(json.dumps([*kept, result], indent=1) + "\n")
    print(json.dumps(result, indent=1))


def write_molecules(folder: Path, smiles: tuple[str, ...], rows: int) -> None:
    """Parts of a table whose column key counts the rows."""
    folder.mkdir()
    draw, part = random.Random(0), 250_000
    for first in range(0, rows, part):
        keys = range(first, min(first + part, rows))
        drawn = [draw.choice(smiles) if key % 997 else "C1CC(" for key in keys]
        table = pa.table({"key": pa.array(keys, pa.int64()), "smiles": drawn})
        pq.write_table(table, folder / f"{first:09}.parquet")


def measured(run: Path, folder: Path, asked: argparse.Namespace) -> dict:
    samples: list[tuple[int, dict[str, int]]] = []

    def progress(title: str, done: int, size: int | None) -> None:
        rows = int(title.split()[0].replace(",", ""))
        if not samples or rows - samples[-1][0] >= asked.rows // 40:
            samples.append((rows, resident()))

    start = time.perf_counter()
    good, bad = runs.predict(
        run, [str(folder / "in")], folder / "out", progress, engine="ray", workers=asked.workers
    )
    seconds = time.perf_counter() - start
    found = pq.read_table(folder / "out")
    assert found["key"].to_pylist() == list(range(asked.rows))
    assert found["y_predicted"].null_count == bad == sum(k % 997 == 0 for k in range(asked.rows))
    early, late = (part_of(samples, asked.rows, ends) for ends in ((0.1, 0.3), (0.8, 1.0)))
    return {
        "seconds": round(seconds, 1),
        "rows_per_second": round(asked.rows / seconds),
        "predicted": good,
        "could_not_be_read": bad,
        "in_order": True,
        "peak_mib": {
            name: round(max(sample.get(name, 0) for _, sample in samples) / 2**20)
            for name in ("command", "largest worker")
        },
        "grew_by_mib": {name: round((late[name] - early[name]) / 2**20) for name in early},
    }


def part_of(samples: list, rows: int, ends: tuple[float, float]) -> dict[str, float]:
    """The mean resident set of each process over a part of the run."""
    some = [sample for done, sample in samples if ends[0] * rows <= done <= ends[1] * rows]
    return {
        name: sum(sample[name] for sample in some) / max(len(some), 1)
        for name in ("command", "largest worker")
    }


def resident() -> dict[str, int]:
    """Bytes in memory of this process, and of the largest worker of Ray."""
    workers = [0]
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_text().startswith("ray::MapWorker"):
                workers.append(pages(folder))
        except OSError:
            continue  # it ended
    return {"command": pages(Path("/proc/self")), "largest worker": max(workers)}


def pages(process: Path) -> int:
    resident, shared = (process / "statm").read_text().split()[1:3]
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
