"""A batch cut out of flat arrays is the batch that PyG would collate."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch as PygBatch
from torch_geometric.data import Data

from edgewise.core.declarations import ModelSettings
from edgewise.core.errors import EdgewiseError
from edgewise.data.chemistry import read_smiles
from edgewise.data.featurizers import PaperFeaturizer, pack

SMILES = ["CCO", "[Na+]", "c1ccccc1O", "bad(", "C#N", "CC(=O)[O-].[K+]", "C"]


@pytest.fixture(scope="module")
def molecules():
    codes = read_smiles(SMILES)
    settings = ModelSettings(pair_threshold=0)
    return pack(codes, PaperFeaturizer.learn(codes, np.arange(len(codes)), settings))


def alone(molecules, index: int) -> Data:
    """One molecule by plain slicing, the slow truth."""
    nodes = slice(molecules.node_offset[index], molecules.node_offset[index + 1])
    edges = slice(molecules.edge_offset[index], molecules.edge_offset[index + 1])
    return Data(
        x=molecules.x[nodes],
        edge_index=molecules.edge_index[:, edges],
        edge_attr=molecules.edge_attr[edges],
    )


@pytest.mark.parametrize("chosen", [[0], [1], [5, 0, 3], [1, 5, 1, 4], [2, 2], list(range(6))])
def test_a_batch_is_what_pyg_collates(molecules, chosen):
    batch = molecules.batch(chosen)
    truth = PygBatch.from_data_list([alone(molecules, i) for i in chosen])
    assert torch.equal(batch.x, truth.x)
    assert torch.equal(batch.edge_index, truth.edge_index)
    assert torch.equal(batch.edge_attr, truth.edge_attr)
    assert torch.equal(batch.graph, truth.batch)
    assert batch.num_graphs == len(chosen)


def test_both_directions_of_a_bond_carry_its_channels(molecules):
    batch = molecules.batch([0])
    assert batch.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert torch.equal(batch.edge_attr[0], batch.edge_attr[1])


def test_graphs_know_their_rows_past_an_unreadable_one(molecules):
    assert molecules.rows.tolist() == [0, 1, 2, 4, 5, 6]
    assert molecules.ids == ("CCO", "[Na+]", "c1ccccc1O", "C#N", "CC(=O)[O-].[K+]", "C")


def test_a_tensor_of_positions_serves_too(molecules):
    assert torch.equal(molecules.batch(torch.tensor([2, 0])).x, molecules.batch([2, 0]).x)


@pytest.mark.parametrize("chosen", [[], [6], [-1], [[0]]])
def test_positions_that_do_not_exist_are_refused(molecules, chosen):
    with pytest.raises(EdgewiseError, match=r"is none; give|do not exist; the set holds 6"):
        molecules.batch(torch.tensor(chosen, dtype=torch.long))
