"""By which formula does training take memory and time?

    python benchmarks/expected_cost.py

Whole graphs with hubs, of 2,000 to 40,000 nodes and 10,000 to 400,000 edges, 1 to 3 channels, 8 to
64 features, networks of 1 to 4 layers 8 to 64 wide: for each layer and normalisation the memory
that three epochs add to the process (its peak, set back before), and the CPU seconds of the fastest
of them, validation included, by one thread, a process each. To these the factors of
`edgewise.training.expected_cost` are fitted, none below 0, so that relative errors are small.
Writes benchmarks/results/expected_cost.json: measurements, factors, and by how much the formula
misses them at most. Goes on where it stopped.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "expected_cost.json"
KINDS = [
    *(("conv", n) for n in ("doubly_stochastic", "symmetric", "gcn", "row")),
    *(("attention", "row"), ("gated", "none"), ("gated", "row")),
]
# nodes, edges, channels, features, hidden, depth
SIZES = [
    (2_000, 10_000, 1, 16, 16, 2),
    (20_000, 100_000, 1, 64, 16, 2),
    (10_000, 100_000, 3, 16, 32, 2),
    (40_000, 100_000, 1, 32, 64, 3),
    (10_000, 400_000, 2, 8, 8, 2),
    (20_000, 200_000, 1, 16, 32, 4),
    (20_000, 200_000, 3, 16, 64, 1),
]


def problem_of(layer: str, normalize: str, size: list[int]):
    """Classes of two, by chance: only cost is asked for."""
    import torch

    from edgewise.core.presets import make_settings
    from edgewise.data.splits import random_split
    from edgewise.graphs.graph import Graph
    from edgewise.tasks.classification import Classification
    from edgewise.units.node import node_problem

    nodes, edges, channels, features, hidden, depth = size
    torch.manual_seed(0)
    ends = torch.stack(
        [torch.randint(nodes, (edges,)), (torch.rand(edges).square() * nodes).long()]
    )
    ends = ends[:, ends[0] != ends[1]].unique(dim=1)
    graph = Graph(
        torch.rand(nodes, features), ends, edge_attr=torch.rand(ends.size(1), channels) + 0.1
    )
    encoder = {"encoder": "linear"} if layer == "gated" else {}
    settings = make_settings(
        "node", "fast", layer=layer, normalize=normalize, hidden=hidden, depth=depth,
        epochs=3, patience=3, directed=True, **encoder,
        **({"adapt": False} if layer == "attention" else {}),
    )  # fmt: skip
    truth = torch.randint(2, (nodes,))
    task = Classification(("y",), ("a", "b"))
    split = random_split(nodes, (0.6, 0.2, 0.2), seed=0)
    return node_problem(graph, task, truth, split, settings)[0]


def measure(layer: str, normalize: str, size: list[int]) -> dict:
    from importing import status

    from edgewise.training import Fitting, make_trainer

    tiny = Fitting(make_trainer(problem_of(layer, normalize, [50, 200, *size[2:]])))
    for _ in range(2):
        tiny.step()  # kernels are loaded
    problem = problem_of(layer, normalize, size)
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what is there now
    before, seconds = status("VmRSS"), []
    fitting = Fitting(make_trainer(problem))
    for _ in range(3):
        start = time.process_time()
        fitting.step()
        seconds.append(time.process_time() - start)
    return {"bytes": status("VmHWM") - before, "seconds": min(seconds)}


def fitted(rows: list[dict]) -> dict:
    """Factors of bytes and of nanoseconds, and by what factor the formula misses at most."""
    import numpy as np
    from scipy.optimize import nnls

    from edgewise.training.expected_cost import terms_of

    every = [terms_of(problem_of(row["layer"], row["normalize"], row["size"]))[0] for row in rows]
    found = {}
    for name, column, scale in (("bytes", "bytes", 1.0), ("nanoseconds", "seconds", 1e9)):
        terms = np.array(every)
        if name == "bytes":
            terms[:, -1] = 0  # parameters are few beside what they are multiplied by
        truth = scale * np.array([row[column] for row in rows])
        factors, _ = nnls(terms / truth[:, None], np.ones(len(rows)))
        ratio = terms @ factors / truth
        found[name] = [float(f"{factor:.3g}") for factor in factors]
        found[f"largest ratio of {name}"] = round(float(max(ratio.max(), 1 / ratio.min())), 2)
    return found


def main() -> None:
    if len(sys.argv) > 1:
        layer, normalize, size = json.loads(sys.argv[1])
        print(json.dumps(measure(layer, normalize, size)))
        return
    rows = json.loads(RESULTS.read_text())["measured"] if RESULTS.exists() else []
    one = {name: "1" for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")}
    for kind in KINDS:
        for size in SIZES:
            what = {"layer": kind[0], "normalize": kind[1], "size": list(size)}
            if any(what.items() <= row.items() for row in rows):
                continue
            run = subprocess.run(
                [sys.executable, __file__, json.dumps([*kind, size])],
                env={**os.environ, **one}, stdout=subprocess.PIPE, check=True,
            )  # fmt: skip
            rows.append({**what, **json.loads(run.stdout.splitlines()[-1])})
            print(rows[-1], flush=True)
            RESULTS.write_text(json.dumps({"measured": rows}, indent=1) + "\n")
    factors = {}
    for layer, normalize in KINDS:
        some = [r for r in rows if (r["layer"], r["normalize"]) == (layer, normalize)]
        factors[f"{layer}, {normalize}"] = fitted(some)
        print(layer, normalize, factors[f"{layer}, {normalize}"])
    RESULTS.write_text(json.dumps({"factors": factors, "measured": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
