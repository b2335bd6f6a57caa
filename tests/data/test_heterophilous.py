"""Squirrel and Minesweeper are what their authors describe, and their splits cover all nodes."""

import pytest
import torch

from edgewise.core.errors import EdgewiseError
from edgewise.data.heterophilous import (
    SHAPES,
    SPLITS,
    UNDIRECTED,
    heterophilous_split,
    load_heterophilous,
)
from edgewise.data.sources import find_source
from edgewise.graphs.channels import is_symmetric

pytestmark = pytest.mark.dataset


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_the_graph_is_as_published(name):
    try:
        graph = load_heterophilous(name)
    except EdgewiseError as error:
        pytest.skip(f"the data are unavailable: {error}")
    undirected = name in UNDIRECTED
    assert is_symmetric(graph.edge_index, graph.edge_attr) is undirected
    assert graph.num_edges == SHAPES[name][1] * (2 if undirected else 1)
    assert find_source([name]).implied == ({"directed": False} if undirected else {})
    for number in range(SPLITS):
        rows = torch.cat(list(heterophilous_split(name, number).parts().values()))
        assert torch.equal(rows.sort().values, torch.arange(graph.num_nodes))
    with pytest.raises(EdgewiseError, match="splits 0 to 9"):
        heterophilous_split(name, 10)
