"""Names of pairs are those of a list that is never made."""

import pytest
import torch

from edgewise.graphs.pair_names import PairNames


@pytest.mark.parametrize("nodes", [None, ("a", "b", "c")])
def test_names_are_those_of_a_list(nodes):
    pairs = torch.tensor([[0, 1, 2, 2, 0], [1, 1, 0, 2, 2]])
    names = PairNames(pairs, nodes)
    shown = nodes or ("0", "1", "2")
    every = [f"{shown[i]} -> {shown[j]}" for i, j in pairs.T.tolist()]
    assert list(names) == every
    assert len(names) == len(every)
    for place in (0, 3, -1):
        assert names[place] == every[place]
    for part in (slice(1, 4), slice(None), slice(4, 4)):
        assert names[part] == every[part]
        assert names.ends(part)[1] == [shown[j] for j in pairs[1, part].tolist()]
    with pytest.raises(IndexError):
        names[5]
