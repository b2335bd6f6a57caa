"""Do two workers on two processors train nearly twice as fast as one worker with one thread?

    python benchmarks/workers.py [molecules] [large-batches] [few-molecules] [nodes] [few-nodes]

Rows a second of training epochs, `edgewise train DATA` from start to end of an epoch, validation
included, and of the training steps alone:

- **molecules**: the default network on Lipophilicity (4,200 molecules, batches of 64, and of 256),
  and on FreeSolv (642), which is small.
- **nodes**: two row-normalised convolutions 64 wide on sampled neighbours (10 and 5, 1,024 nodes a
  step) of a synthetic graph of a million edges (`edgewise.data.synthetic`), and of PubMed.

Each way in a process of its own, by turns, twice; the fastest of its epochs after the first, which
other work of the machine disturbed least. One worker makes its sampled batches by a second thread,
so there is a third way: one worker that has one processor alone. Fetches the data sets if they are
not at hand, and writes what was measured to benchmarks/results/workers.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "workers.json"
EPOCHS, TURNS = 5, 2
NODES = {"neighbors": "10,5", "batch_size": 1024, "normalize": "row", "regime": "given",
         "layer": "conv", "hidden": 64}  # fmt: skip
TASKS = {
    "molecules": ("lipo", {"descriptors": "none"}),
    "large-batches": ("lipo", {"descriptors": "none", "batch_size": 256}),
    "few-molecules": ("freesolv", {"descriptors": "none"}),
    "nodes": ("", NODES),
    "few-nodes": ("pubmed", NODES),
}
WAYS = {"one worker, one thread": 1, "one worker, one processor": 1, "two workers": 2}


def epochs(name: str, way: str) -> None:
    """Print the rows, the seconds of each epoch, and of its steps."""
    import edgewise as ew
    from edgewise.data.graph_files import save_graph
    from edgewise.data.synthetic import direction_and_kind_graph
    from edgewise.training.trainer import Trainer

    data, settings = TASKS[name]
    moments, steps, whole = [], [], Trainer.train_epoch

    def timed(trainer: Trainer, epoch: int) -> float:
        start = time.perf_counter()
        loss = whole(trainer, epoch)
        steps.append(time.perf_counter() - start)
        return loss

    Trainer.train_epoch = timed  # type: ignore[method-assign]
    if way == "one worker, one processor":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        if not data:
            data = str(Path(folder) / "graph.safetensors")
            save_graph(direction_and_kind_graph(84_000)[0], data)
        run = ew.train(
            data,
            Path(folder) / "run",
            workers=WAYS[way],
            epochs=EPOCHS,
            on_epoch=lambda *_: moments.append(time.perf_counter()),
            **settings,
        )
        rows = len(json.loads((run.folder / "splits.json").read_text())["train"])
    print(json.dumps([rows, [b - a for a, b in pairwise(moments)], steps[1:]]))


def measured(name: str, way: str) -> tuple[int, list[float], list[float]]:
    threads = {} if WAYS[way] > 1 else {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, __file__, "--one", name, way],
        env={**environment, **threads},
        stdout=subprocess.PIPE,
        check=True,
    )
    rows, whole, steps = json.loads(done.stdout.splitlines()[-1])
    return rows, whole, steps


def compared(name: str) -> dict[str, object]:
    found: dict[str, tuple[list[float], list[float]]] = {way: ([], []) for way in WAYS}
    for _ in range(TURNS):
        for way, (whole, steps) in found.items():
            rows, *some = measured(name, way)
            whole += some[0]
            steps += some[1]
    rates = {way: [rows / min(seconds) for seconds in both] for way, both in found.items()}
    *others, two = rates.values()
    return {
        "rows": rows,
        **{f"rows a second, {way}": [round(r) for r in both] for way, both in rates.items()},
        **{
            f"two workers / {way}": [round(a / b, 2) for a, b in zip(two, one, strict=True)]
            for way, one in zip(WAYS, others, strict=False)
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TASKS))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.one:
        epochs(*said.one)
        return
    for name in said.names or TASKS:
        result = compared(name)
        print(name, json.dumps(result, indent=1), flush=True)
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps({**known, name: result}, indent=1) + "\n")


if __name__ == "__main__":
    main()
