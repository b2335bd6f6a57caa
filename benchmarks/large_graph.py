"""What do import, sampled training and exact prediction take from a million to 100 million edges?

    python benchmarks/large_graph.py --work FOLDER --edges 1000000 10000000 100000000

Synthetic directed graphs of `importing.py`: a tenth as many nodes as edges, 32 features, 3
channels, targets with hubs. **import**: Parquet tables into a graph store. **sums**: the degrees
and the sums of channels of the whole graph, once for a store that is trained on. **training**:
2,000 sampled steps of 1,024 nodes with fan-outs 10 and 5 through two row-normalised convolutions 32
wide, made as `edgewise train --neighbors` makes them; the label is the sign of a feature, the loss
that of the first and the last 50 steps. **prediction**: all nodes, exactly, in blocks. **train
command** and **predict command**: `edgewise train` on the store (5 % of the nodes for training, 4
epochs with exact validation, a line of predictions for each node, a report), and `edgewise predict`
of all nodes into Parquet.

Every phase of every size is a process of its own with one thread, and a line of
benchmarks/results/large_graph.jsonl; what is there already is not measured again, so that a run
that was stopped goes on. GiB: the most that the process held itself (RssAnon, looked at ten times a
second), and with the pages of files that are mapped, which the system may take back (VmHWM). Rates
are by the processor's time. The last lines printed are the exponents of the CPU seconds.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from importing import GIB, status, write_tables

RESULTS = Path(__file__).parent / "results" / "large_graph.jsonl"
BATCH, FAN_OUTS, STEPS = 1024, (10, 5), 2000


def measured(work: Callable[[], dict]) -> dict:
    """What a phase took, beside what it says itself."""
    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            peak[0] = max(peak[0], status("RssAnon"))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    wall, cpu = time.perf_counter(), time.process_time()
    said = work()
    took = {
        "seconds": round(time.perf_counter() - wall, 1),
        "CPU seconds": round(time.process_time() - cpu, 2),
    }
    done.set()
    watcher.join()
    memory = {"GiB": max(peak[0], status("RssAnon")), "GiB with mapped files": status("VmHWM")}
    return {**said, **took, **{name: round(size / GIB, 2) for name, size in memory.items()}}


def imported(folder: Path) -> dict:
    import edgewise as ew

    tables, out = folder / "tables", folder / "graph"
    return measured(
        lambda: {
            "edges": ew.import_graph(tables, out, target="y", duplicates="sum").graph.num_edges
        }
    )


def sums(folder: Path) -> dict:
    import numpy as np

    from edgewise.data.graph_store import open_store
    from edgewise.graphs.whole_sums import WholeSums

    graph = open_store(folder / "graph").graph

    def work() -> dict:
        found = WholeSums(graph)
        pairs = int(found.degree.sum(dtype=np.int64))
        found.rows("directed", np.zeros(1, dtype=np.int64))
        return {"edges": graph.num_edges, "pairs of neighbours": pairs}

    return measured(work)


def network(graph):
    import torch

    from edgewise.core.declarations import ModelSettings
    from edgewise.nn.network import ChannelNetwork

    torch.set_num_threads(1)
    torch.manual_seed(0)
    settings = ModelSettings(normalize="row", hidden=32, dropout=0.0)
    return ChannelNetwork(graph.num_features, 2, graph.num_channels, settings)


def trained(folder: Path, steps: int = STEPS) -> dict:
    import torch
    from safetensors.torch import save_file
    from torch.nn.functional import cross_entropy

    from edgewise.data.graph_store import open_store
    from edgewise.graphs.sampled_graph import SampledGraph

    graph = open_store(folder / "graph").graph
    model = network(graph)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    data, losses, pairs = SampledGraph(graph, FAN_OUTS), [], 0

    def step(nodes, batch) -> None:
        nonlocal pairs
        truth = (torch.from_numpy(graph.x[nodes.numpy(), 0]) > 0).long()
        loss = cross_entropy(model(batch), truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        pairs += sum(len(hop.near) for hop in batch.edges.hops)

    step(*next(iter(data.training_batches(torch.arange(BATCH), BATCH))))  # the sums of channels
    losses.clear()
    pairs = 0

    def work() -> dict:
        while len(losses) < steps:
            seeds = torch.randperm(graph.num_nodes)[: (steps - len(losses)) * BATCH]
            for nodes, batch in data.training_batches(seeds, BATCH):
                step(nodes, batch)
        shown = [round(statistics.mean(part), 3) for part in (losses[:50], losses[-50:])]
        return {
            "edges": graph.num_edges,
            "steps": len(losses),
            "sampled edges": pairs,
            "loss": shown,
        }

    found = measured(work)
    save_file(model.state_dict(), folder / "model.safetensors")
    return found


def predicted(folder: Path) -> dict:
    import numpy as np
    import torch
    from safetensors.torch import load_file

    from edgewise.data.graph_store import open_store
    from edgewise.graphs.sampled_graph import SampledGraph

    graph = open_store(folder / "graph").graph
    model = network(graph)
    model.load_state_dict(load_file(folder / "model.safetensors"))
    data = SampledGraph(graph)
    some = torch.arange(2)
    with torch.no_grad():  # the sums of channels
        model.eval()(next(iter(data.evaluation_batches(some))))

    def work() -> dict:
        (batch,) = data.evaluation_batches(torch.arange(graph.num_nodes))
        with torch.no_grad():
            outputs = model(batch)
        truth = torch.from_numpy(np.asarray(graph.x)[:, 0] > 0)
        right = float((outputs.argmax(1) == truth.long()).double().mean())
        return {"edges": graph.num_edges, "accuracy": round(right, 4)}

    return measured(work)


def commanded(*words: str) -> dict:
    """What a command took, and how much memory."""
    import resource

    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    most = {"RssAnon": 0, "VmHWM": 0}
    process = subprocess.Popen([sys.executable, "-m", "edgewise", *words], stdout=sys.stderr)
    while process.poll() is None:
        for name in most:
            with suppress(FileNotFoundError, ProcessLookupError):
                most[name] = max(most[name], status(name, process.pid))
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"edgewise {' '.join(words)} ended with code {process.returncode}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "seconds": round(time.perf_counter() - wall, 1),
        "CPU seconds": round(used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime, 2),
        "GiB": round(most["RssAnon"] / GIB, 2),
        "GiB with mapped files": round(most["VmHWM"] / GIB, 2),
    }


def of_graph(folder: Path) -> dict:
    from edgewise.data.graph_store import open_store

    return {"edges": open_store(folder / "graph").graph.num_edges}


def train_command(folder: Path) -> dict:
    shutil.rmtree(folder / "run", ignore_errors=True)
    given = {"neighbors": "10,5", "batch-size": BATCH, "hidden": 32, "split": "sparse", "epochs": 4}
    flags = [str(word) for name, value in given.items() for word in (f"--{name}", value)]
    return of_graph(folder) | commanded(
        "train", str(folder / "graph"), *flags, "--out", str(folder / "run"), "--quiet"
    )


def predict_command(folder: Path) -> dict:
    run, out = str(folder / "run"), str(folder / "predictions.parquet")
    return of_graph(folder) | commanded("predict", run, str(folder / "graph"), "--out", out)


PHASES = {
    "import": imported,
    "sums": sums,
    "training": trained,
    "prediction": predicted,
    "train command": train_command,
    "predict command": predict_command,
}


def warm_up(last: str) -> None:
    """Have the kernels compiled, on a graph of 20,000 edges."""
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder) / "tables", 20_000)
        for phase in list(PHASES)[: list(PHASES).index(last) + 1]:
            PHASES[phase](Path(folder), **({"steps": 3} if phase == "training" else {}))


def known() -> list[dict]:
    return list(map(json.loads, RESULTS.read_text().splitlines())) if RESULTS.exists() else []


def measure(size: int, phase: str, work: Path) -> None:
    folder = work / str(size)
    if phase == "import" and not (folder / "tables.done").exists():
        write_tables(folder / "tables", size)
        (folder / "tables.done").touch()
    one = {name: "1" for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS")}
    run = subprocess.run(
        [sys.executable, __file__, "--work", str(work), "--one", str(size), phase],
        stdout=subprocess.PIPE, env={**os.environ, **one}, check=True,
    )  # fmt: skip
    line = {"size": size, "phase": phase, **json.loads(run.stdout.splitlines()[-1])}
    done = line.get("sampled edges", line["edges"])
    line["edges a CPU second"] = round(done / line["CPU seconds"])
    with RESULTS.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder for tables and stores")
    parser.add_argument("--edges", type=int, nargs="+", default=[10**6, 10**7, 10**8])
    parser.add_argument("--phases", nargs="+", choices=PHASES, default=list(PHASES))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.one:
        size, phase = said.one
        warm_up(phase)
        print(json.dumps(PHASES[phase](said.work / size)))
        return
    for size in said.edges:
        for phase in said.phases:
            if not any((line["size"], line["phase"]) == (size, phase) for line in known()):
                measure(size, phase, said.work)
    for phase in PHASES:
        spent = {line["size"]: line["CPU seconds"] for line in known() if line["phase"] == phase}
        if len(spent) > 1:
            first, last = min(spent), max(spent)
            exponent = math.log(spent[last] / spent[first]) / math.log(last / first)
            print(f"{phase}: exponent {exponent:.2f} from {first:,} to {last:,} edges")


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    main()
