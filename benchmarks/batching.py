"""Is cutting a batch out of flat arrays faster than collating graphs one by one?

    python benchmarks/batching.py

Batches of 64 molecules of Lipophilicity, in the same shuffled order for both: ours by array
operations on the packed set, the rival PyTorch Geometric's DataLoader over `Data` objects with
the same tensors. CPU, one process, one thread; medians over the epochs after one warm-up.
Fetches the data set if it is not at hand, and writes benchmarks/results/batching.json.
"""

import json
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from edgewise.core.declarations import ModelSettings
from edgewise.data.chemistry import read_smiles
from edgewise.data.featurizers import PaperFeaturizer, pack
from edgewise.data.molecule_tables import read_named
from edgewise.graphs.graph_set import GraphSet

BATCH, EPOCHS = 64, 7


def as_pyg(molecules: GraphSet) -> list[Data]:
    single = (molecules.batch([i]) for i in range(len(molecules)))
    return [Data(x=b.x, edge_index=b.edge_index, edge_attr=b.edge_attr) for b in single]


def seconds(batches) -> float:
    start = time.perf_counter()
    for batch in batches:
        batch.edge_index, batch.edge_attr  # noqa: B018  ours are gathered when they are asked for
    return time.perf_counter() - start


def main() -> None:
    torch.set_num_threads(1)
    source = read_named("lipo")
    start = time.process_time()
    codes = read_smiles(source.smiles)
    every = np.arange(len(codes))
    molecules = pack(codes, PaperFeaturizer.learn(codes, every, ModelSettings()))
    featurised = len(codes) / (time.process_time() - start)
    graphs = as_pyg(molecules)
    order = torch.randperm(len(molecules), generator=torch.Generator().manual_seed(0))
    count = -(-len(order) // BATCH)
    ours, rival = [], []
    for _ in range(EPOCHS + 1):
        # Alternating, so that a busy moment of the machine meets both.
        ours.append(seconds(molecules.batch(chosen) for chosen in order.split(BATCH)) / count)
        rival.append(seconds(DataLoader(graphs, BATCH, sampler=order.tolist())) / count)
    ours_ms, rival_ms = (1e3 * statistics.median(times[1:]) for times in (ours, rival))
    result = {
        "molecules": len(molecules),
        "batch": BATCH,
        "packed_ms_per_batch": round(ours_ms, 4),
        "pyg_dataloader_ms_per_batch": round(rival_ms, 4),
        "times_faster": round(rival_ms / ours_ms, 1),
        "featurised_molecules_per_second_per_core": round(featurised),
    }
    for name, value in result.items():
        print(f"| {name.replace('_', ' ')} | {value} |")
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / "batching.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
