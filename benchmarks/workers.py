"""Do two workers on two processors train nearly twice as fast as one worker with one thread?

    python benchmarks/workers.py

Rows a second in training, validation included: the default network on the molecules of FreeSolv,
and two row-normalised convolutions 64 wide on sampled neighbours (10 and 5, 1,024 nodes a step) of
PubMed. Each way in a process of its own, by turns, twice; the median of its epochs after the first.
Fetches the data sets if they are not at hand, and writes benchmarks/results/workers.json.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "workers.json"
EPOCHS, TURNS = 5, 2
NODES = {"neighbors": "10,5", "batch_size": 1024, "normalize": "row", "regime": "given"}
TASKS = {
    "molecules": ("freesolv", {"descriptors": "none"}),
    "sampled nodes": ("pubmed", {**NODES, "layer": "conv", "hidden": 64}),
}


def epochs(name: str, workers: int) -> None:
    """Print the rows and the seconds of each epoch."""
    import edgewise as ew

    data, settings = TASKS[name]
    moments = []
    with tempfile.TemporaryDirectory() as folder:
        run = ew.train(
            data,
            Path(folder) / "run",
            workers=workers,
            epochs=EPOCHS,
            on_epoch=lambda *_: moments.append(time.perf_counter()),
            **settings,
        )
        rows = len(json.loads((run.folder / "splits.json").read_text())["train"])
    print(json.dumps([rows, [b - a for a, b in pairwise(moments)]]))


def measured(name: str, workers: int) -> tuple[int, list[float]]:
    threads = {} if workers > 1 else {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    environment = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS",)}
    done = subprocess.run(
        [sys.executable, __file__, name, str(workers)],
        env={**environment, **threads},
        stdout=subprocess.PIPE,
        check=True,
    )
    rows, seconds = json.loads(done.stdout.splitlines()[-1])
    return rows, seconds


def main() -> None:
    result = {}
    for name in TASKS:
        found: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(TURNS):
            for workers, seconds in found.items():
                rows, some = measured(name, workers)
                seconds += some
        one, two = (rows / statistics.median(seconds) for seconds in found.values())
        result[name] = {
            "rows": rows,
            "rows a second, one worker with one thread": round(one),
            "rows a second, two workers": round(two),
            "ratio": round(two / one, 2),
        }
        print(name, result[name])
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    epochs(sys.argv[1], int(sys.argv[2])) if len(sys.argv) > 1 else main()
