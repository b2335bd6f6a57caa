"""A split is three disjoint lists of rows, the same for the same seed."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from edgewise.core.errors import EdgewiseError
from edgewise.data.splits import Split, fractions_of, given_split, load_split, random_split


@given(
    rows=st.integers(1, 300),
    cuts=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    seed=st.integers(0, 1000),
)
def test_every_row_stands_in_one_subset(rows, cuts, seed):
    low, high = sorted(cuts)
    split = random_split(rows, (low, high - low, 1 - high), seed=seed)
    together = torch.cat(list(split.parts().values())).sort().values
    assert together.tolist() == list(range(rows))


@pytest.mark.parametrize(
    ("kind", "sizes"), [("sparse", (50, 150, 800)), ("dense", (600, 200, 200))]
)
def test_the_papers_splits_have_their_sizes(kind, sizes):
    split = random_split(1000, kind, seed=0)
    assert tuple(len(part) for part in split.parts().values()) == sizes


def test_the_same_seed_gives_the_same_split_and_another_another():
    first, again, other = (random_split(100, "dense", seed=s).train for s in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()


def test_only_the_given_rows_are_drawn():
    labelled = torch.tensor([3, 5, 8, 13, 21])
    split = random_split(labelled, "dense", seed=0)
    assert torch.cat(list(split.parts().values())).sort().values.tolist() == labelled.tolist()


def test_stratifying_keeps_the_share_of_each_class_in_each_subset():
    y = torch.tensor([0] * 700 + [1] * 200 + [2] * 100)
    split = random_split(1000, "dense", seed=0, stratify=y)
    assert torch.bincount(y[split.train]).tolist() == [420, 120, 60]
    assert torch.bincount(y[split.test]).tolist() == [140, 40, 20]


def test_stratifying_balances_a_rare_yes_among_many_noes():
    y = torch.zeros(1000)
    y[torch.randperm(1000)[:50]] = 1.0
    split = random_split(1000, "dense", seed=0, stratify=y)
    assert [int(y[part].sum()) for part in split.parts().values()] == [30, 10, 10]


def test_stratifying_numbers_balances_their_quantiles():
    y = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    split = random_split(1000, "molecules", seed=0, stratify=y)
    decile = y.argsort().argsort() // 100
    assert torch.bincount(decile[split.validation]).tolist() == [10] * 10
    assert torch.bincount(decile[split.test]).tolist() == [10] * 10


def test_a_split_comes_back_from_its_file(tmp_path):
    split = random_split(50, "sparse", seed=3)
    split.save(tmp_path / "split.json")
    again = load_split(tmp_path / "split.json")
    assert all(
        torch.equal(a, b)
        for a, b in zip(split.parts().values(), again.parts().values(), strict=True)
    )


def test_masks_are_taken_as_row_numbers():
    mask = torch.tensor([True, False, False])
    assert given_split(mask, [1], ~mask & torch.tensor([True, False, True])).test.tolist() == [2]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: given_split([0, 1], [1], []), r"row\(s\) \[1\] stand in a split more than once"),
        (lambda: given_split([-1], [], []), r"row number\(s\) \[-1\] are negative"),
        (lambda: given_split(torch.tensor([0.5]), [], []), "expected row numbers"),
        (lambda: Split(*[torch.zeros(1, 1).long()] * 3), "expected row numbers"),
        (lambda: fractions_of("spars"), "no split 'spars'; the names are sparse"),
        (lambda: fractions_of((0.5, 0.6, 0.1)), "not three shares that sum to 1"),
        (lambda: fractions_of((1.5, -0.5, 0.0)), "not three shares"),
        (lambda: random_split(0, "dense", seed=0), "no rows to split"),
        (
            lambda: random_split(3, "dense", seed=0, stratify=torch.zeros(3, 2)),
            "give one value per row",
        ),
    ],
)
def test_a_bad_split_is_refused_with_the_cure(make, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        make()


@pytest.mark.parametrize("content", ["", "[]", '{"train": [1]}', '{"train": 1}', "{'a'"])
def test_a_file_that_is_no_split_is_a_sentence(tmp_path, content):
    (tmp_path / "s.json").write_text(content)
    with pytest.raises(EdgewiseError, match="is not a split"):
        load_split(tmp_path / "s.json")
