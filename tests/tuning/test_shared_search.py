"""Processes that share a storage make each trial once, and those of killed ones again."""

import os
import time

import pytest
from commands import forking
from tuning_toys import search, write_tables

import edgewise as ew
from edgewise.core.errors import EdgewiseError
from edgewise.data.sources import find_source
from edgewise.tuning import shared


def take_part(place, out, seconds, storage=None):
    """One process of a search of six trials, which may be slow."""
    shared.BEAT, shared.LOST = 0.3, 3.0
    with ew.plain_kernels():
        search(
            find_source([str(place / "data")]),
            place / out,
            storage=storage or f"journal://{place / 'shared.log'}",
            on_epoch=lambda *_: time.sleep(seconds),
        )


@pytest.mark.slow
def test_several_processes_make_the_trials_and_that_of_a_killed_one_is_made_again(tmp_path):
    write_tables(tmp_path / "data")
    victim = forking().Process(target=take_part, args=(tmp_path, "a", 60))
    victim.start()
    while (
        not (tmp_path / "shared.log").exists()
        or "alive" not in (tmp_path / "shared.log").read_text()
    ):
        time.sleep(0.05)
    others = [forking().Process(target=take_part, args=(tmp_path, out, 0)) for out in "bb"]
    for process in others:
        process.start()
    victim.kill()
    for process in [victim, *others]:
        process.join()
    assert [process.exitcode for process in others] == [0, 0]
    found = search(
        find_source([str(tmp_path / "data")]), tmp_path / "c", storage=str(tmp_path / "shared.log")
    )
    assert found.counted == 6
    counted = [trial for trial in found.trials if trial.state != "interrupted"]
    assert [trial.reason for trial in found.trials if trial.number == 0] == [
        "its process was killed"
    ]
    # The preset was the killed trial, and was made again; nothing else was made twice.
    drawn = [tuple(trial.settings.items()) for trial in counted]
    assert drawn.count(tuple(found.trials[0].settings.items())) == 1
    assert len(set(drawn)) == 6
    assert (tmp_path / "b" / "best.toml").read_text() == (tmp_path / "c" / "best.toml").read_text()


@pytest.mark.slow
def test_a_storage_in_a_data_base_goes_on_where_it_was(source, tmp_path):
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    assert search(source, tmp_path / "a", trials=1, storage=url).counted == 1
    found = search(source, tmp_path / "b", trials=2, storage=url)
    assert [trial.number for trial in found.trials] == [0, 1]


@pytest.mark.slow
def test_a_storage_in_postgresql_is_shared_by_processes(tmp_path):
    url = os.environ.get("EDGEWISE_POSTGRESQL")  # such as postgresql+psycopg2://me@/postgres
    if url is None:
        pytest.skip("EDGEWISE_POSTGRESQL names no data base of PostgreSQL to write to")
    write_tables(tmp_path / "data")
    both = [forking().Process(target=take_part, args=(tmp_path, out, 0, url)) for out in ("a", "b")]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    found = search(find_source([str(tmp_path / "data")]), tmp_path / "c", storage=url)
    counted = [trial for trial in found.trials if trial.state != "interrupted"]
    assert found.counted == len({tuple(trial.settings.items()) for trial in counted}) == 6
    assert (tmp_path / "a" / "best.toml").read_text() == (tmp_path / "b" / "best.toml").read_text()


def test_a_storage_that_cannot_be_used_is_a_sentence_without_its_password(source, tmp_path):
    with pytest.raises(EdgewiseError, match=r"the storage nothing://\*\*\*@host/x cannot be used"):
        search(source, tmp_path / "a", storage="nothing://me:secret@host/x")
