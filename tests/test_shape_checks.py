"""The checks that tests run under find a wrong type or shape wherever it comes in or goes out."""

from dataclasses import dataclass

import pytest
from beartype import beartype
from jaxtyping import Float, TypeCheckError
from shape_checks import checked
from torch import Tensor, ones

from edgewise.graphs.features import SparseFeatures
from edgewise.kernels import backend

check = checked(typechecker=beartype)


@check
def plain(count: int) -> str:
    return "word" if count else count


@check
def shaped(x: Float[Tensor, "rows 2"], y: Float[Tensor, " rows"] | None = None) -> Tensor:
    return x if y is None else x * y[:, None]


@check
def halved(x: Float[Tensor, " rows"]) -> Float[Tensor, " rows"]:
    return x[::2]


@check
def by_name(size: int, x: Float[Tensor, " {size}"]) -> None:
    return None


@check
def later(place: "Place | None", unknown: "Nowhere" = None) -> "Place | None":  # noqa: F821
    return place


@check
def rows(count: int, x: Float[Tensor, " count"]):
    yield from range(count)


@check
@dataclass(frozen=True)
class Place:
    x: Float[Tensor, " nodes"]
    y: Float[Tensor, " nodes"]


@check
@dataclass(frozen=True)
class NamedPlace(Place):
    name: str


@check
def named(place: "NamedPlace") -> str:
    return place.name


@pytest.mark.parametrize(
    "call",
    [
        lambda: plain("3"),
        lambda: plain(0),
        lambda: shaped(ones(3, 3)),
        lambda: shaped(ones(3, 2), ones(4)),
        lambda: halved(ones(4)),
        lambda: by_name(2, ones(3)),
        lambda: next(rows("3", ones(3))),
        lambda: Place(ones(3), ones(4)),
        lambda: NamedPlace(ones(3), ones(4), "home"),
        lambda: NamedPlace(ones(3), ones(3), 4),
    ],
)
def test_what_does_not_fit_is_refused(call):
    with pytest.raises(TypeCheckError):
        call()


def test_what_fits_passes_and_sizes_are_those_of_one_call():
    assert plain(1) == "word"
    for size in (1, 3):
        assert shaped(ones(size, 2), ones(size)).shape == (size, 2)
        assert later(NamedPlace(ones(size), ones(size), "home")).name == "home"
    assert halved(ones(1)).shape == (1,)
    assert later(None, unknown=3) is None
    assert list(rows(2, ones(5))) == [0, 1]


def test_closures_are_checked_one_by_one():
    def adding(term, kind):
        @check
        def add(x: kind) -> int:
            return x + term

        return add

    first, second, third = adding(1, int), adding(2, int), adding(0.5, int)
    assert (first(1), second(1)) == (2, 3)
    assert (second.__name__, second.__wrapped__(2)) == ("add", 4)
    with pytest.raises(TypeCheckError):
        second(1.0)
    with pytest.raises(TypeCheckError):
        third(1)
    with pytest.raises(TypeCheckError):
        adding(1, float)(1)


def test_annotations_stay_as_they_are_written():
    assert later.__annotations__["place"] == "Place | None"
    assert named.__annotations__["place"] == "NamedPlace"
    with pytest.raises(TypeCheckError):
        named(Place(ones(3), ones(3)))


def test_the_package_is_checked():
    with pytest.raises(TypeCheckError):
        backend.take(3, ones(3))
    with pytest.raises(TypeCheckError):
        SparseFeatures(1, 2, 3)
