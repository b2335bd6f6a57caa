"""Links are what edges make of pairs: first times, types, and nothing that comes later."""

import math
from itertools import product

import pytest
import torch

from edgewise.graphs.links import find_links

NODES, KINDS = 4, 3


def drawn_edges(count=60, seed=0):
    draw = torch.Generator().manual_seed(seed)
    ends = torch.randint(NODES, (2, count), generator=draw)
    time = torch.randint(6, (count,), generator=draw).double()
    return ends, time, torch.randint(-1, KINDS, (count,), generator=draw)


def expected_rows(ends, time, types, directed):
    """The rows of the definition, found by going over pairs and moments one by one."""
    edges = [
        (tuple(pair) if directed else tuple(sorted(pair)), when, kind)
        for pair, when, kind in zip(ends.T.tolist(), time.tolist(), types.tolist(), strict=True)
    ]
    rows = {}
    for when, pair in product(sorted({e[1] for e in edges}), sorted({e[0] for e in edges})):
        own = [e for e in edges if e[0] == pair]
        before, now = ([e for e in own if e[1] < when], [e for e in own if e[1] == when])
        truth = [math.nan if before else float(bool(now))]
        hazy = any(e[2] < 0 for e in (*before, *now))
        for kind in range(KINDS):
            there = any(e[2] == kind for e in now)
            truth.append(
                math.nan
                if any(e[2] == kind for e in before) or (hazy and not there)
                else float(there)
            )
        if 1.0 in truth:
            rows[when, pair] = truth
    return rows


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("timed", [True, False])
def test_rows_are_those_of_the_definition(directed, timed):
    ends, time, types = drawn_edges()
    when = time if timed else None
    links = find_links(ends, directed=directed, time=when, types=types, num_types=KINDS)
    expected = expected_rows(ends, time if timed else 0 * time, types, directed)
    assert [tuple(pair) for pair in links.pairs.T.tolist()] == [pair for _, pair in expected]
    if timed:
        assert links.time.tolist() == [moment for moment, _ in expected]
    assert torch.equal(
        links.truth.nan_to_num(-1), torch.tensor(list(expected.values())).nan_to_num(-1)
    )


@pytest.mark.parametrize("seed", range(5))
def test_what_happens_later_changes_no_row_before(seed):
    ends, time, types = drawn_edges(seed=seed)
    other, _, kinds = drawn_edges(seed=seed + 100)
    later = time >= 3
    changed = torch.where(later, other, ends), torch.where(later, kinds, types)
    found = find_links(ends, directed=True, time=time, types=types, num_types=KINDS)
    again = find_links(changed[0], directed=True, time=time, types=changed[1], num_types=KINDS)
    early, same = found.time < 3, again.time < 3
    assert early.any()
    assert torch.equal(found.pairs[:, early], again.pairs[:, same])
    assert torch.equal(found.truth[early].nan_to_num(-1), again.truth[same].nan_to_num(-1))
