"""A molecule data set as flat arrays with offsets; a batch is cut out by array operations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.chemistry import MoleculeCodes
from edgewise.data.molecules import Featurizer


@dataclass(frozen=True, eq=False)
class Batch:
    """Several graphs as one block-diagonal graph."""

    x: Float[Tensor, "nodes features"]
    edge_index: Int[Tensor, "2 edges"]
    edge_attr: Float[Tensor, "edges channels"]
    graph: Int[Tensor, " nodes"]  # the graph of each node
    num_graphs: int
    y: Float[Tensor, "graphs targets"] | None  # NaN where a target was not measured


@dataclass(frozen=True, eq=False)
class MoleculeSet:
    """Many small graphs, end to end in flat arrays.

    Graph ``g`` owns the nodes ``node_offset[g]`` up to ``node_offset[g + 1]`` and the edges
    likewise. ``edge_index`` counts nodes within their own graph; both directions of a bond
    are there, side by side.
    """

    x: Float[Tensor, "nodes features"]
    edge_index: Int[Tensor, "2 edges"]
    edge_attr: Float[Tensor, "edges channels"]
    node_offset: Int[Tensor, " graphs_plus_one"]
    edge_offset: Int[Tensor, " graphs_plus_one"]
    y: Float[Tensor, "graphs targets"] | None
    smiles: tuple[str, ...]
    rows: Int[Tensor, " graphs"]  # the row of each molecule in its table
    target_names: tuple[str, ...] = ()
    channel_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.smiles)

    def __repr__(self) -> str:
        return (
            f"MoleculeSet(molecules={len(self)}, nodes={self.x.size(0)}, "
            f"edges={self.edge_index.size(1)}, channels={self.edge_attr.size(1)}, "
            f"features={self.x.size(1)}, targets={len(self.target_names)})"
        )

    def batch(self, indices: Sequence[int] | Tensor) -> Batch:
        """Cut out some molecules, in the order given, as one block-diagonal graph."""
        chosen = torch.as_tensor(indices, dtype=torch.int64)
        if chosen.dim() != 1 or not len(chosen):
            raise EdgewiseError(
                f"a batch of shape {list(chosen.shape)} is none; give the positions of one "
                "or more molecules"
            )
        if int(chosen.min()) < 0 or int(chosen.max()) >= len(self):
            outside = chosen[(chosen < 0) | (chosen >= len(self))].tolist()
            raise EdgewiseError(
                f"molecule(s) {preview(outside)} do not exist; the set holds {len(self)}, "
                "counted from 0"
            )
        nodes = _ranges(self.node_offset, chosen)
        edges = _ranges(self.edge_offset, chosen)
        first_node = _exclusive_sum(nodes.counts)
        return Batch(
            x=self.x.index_select(0, nodes.positions),
            edge_index=self.edge_index.index_select(1, edges.positions)
            + first_node.repeat_interleave(edges.counts, output_size=len(edges.positions)),
            edge_attr=self.edge_attr.index_select(0, edges.positions),
            graph=torch.arange(len(chosen)).repeat_interleave(
                nodes.counts, output_size=len(nodes.positions)
            ),
            num_graphs=len(chosen),
            y=None if self.y is None else self.y.index_select(0, chosen),
        )


def pack(
    codes: MoleculeCodes,
    featurizer: Featurizer,
    targets: np.ndarray | None = None,
    target_names: Sequence[str] = (),
) -> MoleculeSet:
    """Featurise molecules into one set.

    Args:
        codes: Molecules as read.
        featurizer: Learnt from the training molecules.
        targets: ``[rows of the table, targets]``, NaN where not measured.
        target_names: The name of each target.
    """
    ends = codes.ends.astype(np.int64)
    both_ways = np.stack([ends, ends[:, ::-1]], axis=1).reshape(-1, 2)  # bond k: edges 2k, 2k+1
    y = None
    if targets is not None:
        y = torch.from_numpy(np.asarray(targets, dtype=np.float32)[codes.rows])
    return MoleculeSet(
        x=torch.from_numpy(featurizer.atoms(codes)),
        edge_index=torch.from_numpy(both_ways.T.copy()),
        edge_attr=torch.from_numpy(featurizer.bonds(codes)).repeat_interleave(2, dim=0),
        node_offset=torch.from_numpy(codes.atom_offset),
        edge_offset=torch.from_numpy(codes.bond_offset * 2),
        y=y,
        smiles=codes.smiles,
        rows=torch.from_numpy(codes.rows),
        target_names=tuple(target_names),
        channel_names=featurizer.channel_names,
    )


class _Ranges(NamedTuple):
    positions: Tensor  # all members of the chosen ranges, one range after the other
    counts: Tensor  # how many each range has


def _ranges(offset: Tensor, chosen: Tensor) -> _Ranges:
    start = offset.index_select(0, chosen)
    counts = offset.index_select(0, chosen + 1) - start
    before = _exclusive_sum(counts)
    total = int(before[-1] + counts[-1])
    shift = (start - before).repeat_interleave(counts, output_size=total)
    return _Ranges(torch.arange(total) + shift, counts)


def _exclusive_sum(counts: Tensor) -> Tensor:
    return counts.cumsum(0) - counts
