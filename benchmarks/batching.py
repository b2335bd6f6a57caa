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

import torch
from edgewise.data.molecules import learn_featurizer
from edgewise.data.packed import MoleculeSet, pack
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from edgewise.data.chemistry import read_smiles
from edgewise.data.molecule_tables import read_named

BATCH, EPOCHS = 64, 7


def as_pyg(molecules: MoleculeSet) -> list[Data]:
    single = (molecules.batch([i]) for i in range(len(molecules)))
    return [Data(x=b.x, edge_index=b.edge_index, edge_attr=b.edge_attr, y=b.y) for b in single]


def seconds(batches) -> float:
    start = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - start


def main() -> None:
    torch.set_num_threads(1)
    source = read_named("lipo")
    start = time.process_time()
    codes = read_smiles(source.smiles)
    molecules = pack(
        codes, learn_featurizer(codes, range(len(codes))), source.targets, source.target_names
    )
    featurised = len(codes) / (time.process_time() - start)
    graphs = as_pyg(molecules)
    order = torch.randperm(len(molecules), generator=torch.Generator().manual_seed(0))
    count = -(-len(order) // BATCH)
    ours, rival = [], []
    for _ in range(EPOCHS + 1):
        # Alternating, so that a busy moment of the machine slows both.
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
