"""Graphs whose neighbours differ (Platonov et al., 2023), with the ten splits of their authors."""

import io

import numpy as np
import torch

from edgewise.core.errors import EdgewiseError
from edgewise.data.splits import Split
from edgewise.data.store import open_files
from edgewise.graphs.graph import Graph

# Nodes, edges as the file has them, features, classes; checked after every parse.
SHAPES = {"squirrel": (2223, 65718, 2089, 5), "minesweeper": (10000, 39402, 7, 2)}
UNDIRECTED = frozenset({"minesweeper"})  # each edge once in the file, both ways in the graph
SPLITS = 10
_MASKS = ("train_masks", "val_masks", "test_masks")


def load_heterophilous(name: str) -> Graph:
    """``"squirrel"``, without its duplicate nodes and directed, or ``"minesweeper"``."""
    arrays = _arrays(name)
    edges = torch.from_numpy(arrays["edges"].astype(np.int64)).T.contiguous()
    if name in UNDIRECTED:
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    return Graph(
        torch.from_numpy(arrays["node_features"].astype(np.float32)),
        edges,
        y=torch.from_numpy(arrays["node_labels"].astype(np.int64)),
    )


def heterophilous_split(name: str, number: int) -> Split:
    """One of the ten splits of the authors, numbered from 0."""
    if not 0 <= number < SPLITS:
        raise EdgewiseError(f"{name} has the splits 0 to {SPLITS - 1}, not {number}")
    arrays = _arrays(name)
    return Split(*(torch.from_numpy(np.flatnonzero(arrays[mask][number])) for mask in _MASKS))


def _arrays(name: str) -> dict[str, np.ndarray]:
    file = open_files(name)["graph"]
    with np.load(io.BytesIO(file.data), allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
    x, y = arrays["node_features"], arrays["node_labels"]
    found = (len(x), len(arrays["edges"]), x.shape[1], int(y.max()) + 1)
    if found != SHAPES[name]:
        raise EdgewiseError(f"{file.path} holds {found}, expected {SHAPES[name]}; fetch it again")
    return arrays
