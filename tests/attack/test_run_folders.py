"""Folders that were tampered with or damaged: each file is used as written, or refused in words."""

import itertools
import json
import os
import shutil

import pytest
from safetensors.torch import load_file, save_file
from samples import reseal, targets, write_samples

import edgewise as ew
from edgewise import runs
from edgewise.core.config import read_config
from edgewise.core.errors import EdgewiseError
from edgewise.core.files import alone_in
from edgewise.core.schema import parse_json, read_json
from edgewise.data.splits import load_split
from edgewise.runs.report import write_report
from edgewise.training import load_model

pytestmark = pytest.mark.slow

DEEP = "[" * 100_000 + "]" * 100_000
# What takes the place of a value, or of the whole file.
WRONG = {
    "null": None,
    "a word": "x",
    "an empty word": "",
    "minus one": -1,
    "a huge number": 10**9,
    "a number of 400 digits": 10**400,
    "an overflowing number": 1e300,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "true": True,
    "an empty list": [],
    "a list of lists": [[]],
    "a list of null": [None],
    "an empty object": {},
    "an object of lists": {"x": []},
    "half a character": "\ud800",
}
WHOLE = {
    "empty": b"",
    "binary": bytes(range(256)),
    "invalid UTF-8": b'{"format": "\xff"}',
    "UTF-16": '{"format": "x"}'.encode("utf-16"),
    "nested lists": DEEP.encode(),
    "nested objects": ('{"a":' * 100_000 + "1" + "}" * 100_000).encode(),
    "a number of 10,000 digits": b'{"format": ' + b"9" * 10_000 + b"}",
    "cut": b'{"format": "edgew',
    "a list": b"[1, 2, 3]",
    "a word": b'"edgewise"',
    "a number": b"17",
    "null": b"null",
    "NaN": b"NaN",
    "spaces": b"  \n ",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attack") / "files"
    write_samples(folder)
    return folder


@pytest.fixture
def nodes(files, tmp_path):
    return shutil.copytree(files / "nodes", tmp_path / "nodes")


def edited(path, edit, *, seal=True):
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
    if seal:
        reseal(path)


NAMES = (
    *("nodes/recipe.json", "nodes/metrics.json", "nodes/model.json", "nodes/reader.json"),
    *("nodes/splits.json", "nodes/manifest.json", "nodes/history.csv", "nodes/predictions.csv"),
    *("run/featurizer.json", "study.json", "journal.jsonl", "estimator.json", "classifier.json"),
    *("results.jsonl", "splits.json", "config.toml"),
)


def places(content, where=()):
    """The way to every value of a JSON file."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content[:2])
    for key, value in pairs:
        yield (*where, key)
        if isinstance(value, dict | list):
            yield from places(value, (*where, key))


def replaced(content, where, value):
    content = json.loads(json.dumps(content))
    holder = content
    for key in where[:-1]:
        holder = holder[key]
    if value is ...:
        del holder[where[-1]]
    else:
        holder[where[-1]] = value
    return content


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_something_else_is_one_sentence(files, name):
    (target,) = (one for one in targets(files) if one.name == name)
    before = target.path.read_bytes()
    for kind, content in WHOLE.items():
        # A last line without an end was being written when the process was killed.
        target.path.write_bytes(content + b"\n" * name.endswith(".jsonl"))
        try:
            if target.sealed:
                reseal(target.path)
            with pytest.raises(EdgewiseError) as error:
                target.read()
            assert len(str(error.value)) < 1000, kind
        except pytest.fail.Exception:
            assert kind in ("empty", "spaces"), kind  # an empty config or journal says nothing
            assert name in ("config.toml", "journal.jsonl")
        finally:
            target.path.write_bytes(before)
            if target.sealed:
                reseal(target.path)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".json")])
def test_a_value_of_another_kind_is_used_or_one_sentence(files, name):
    (target,) = (one for one in targets(files) if one.name == name)
    before = target.path.read_bytes()
    content = json.loads(before)
    every = list(itertools.product(places(content), [*WRONG.items(), ("missing", ...)]))
    refused = 0
    # A sample is enough where there are thousands; its step meets every kind of value.
    step = len(every) // 60 + 1
    step += step % (len(WRONG) + 1) == 0
    for where, (_, value) in every[::step]:
        target.path.write_text(json.dumps(replaced(content, where, value)))
        try:
            if target.sealed:
                reseal(target.path)
            target.read()
        except EdgewiseError:
            refused += 1
        except Exception as error:
            pytest.fail(f"{name} with {value!r} at {where}: {type(error).__name__}: {error}")
        finally:
            target.path.write_bytes(before)
            if target.sealed:
                reseal(target.path)
    assert refused


def test_swapped_classes_are_found(nodes):
    edited(nodes / "model.json", lambda c: c["task"]["classes"].reverse(), seal=False)
    with pytest.raises(EdgewiseError, match="is not as it was written"):
        load_model(nodes)


def test_another_normalisation_is_found(nodes):
    other = {"normalize": "row"}
    edited(nodes / "model.json", lambda c: c["settings"]["model"].update(other), seal=False)
    with pytest.raises(EdgewiseError, match="is not as it was written"):
        load_model(nodes)


def test_a_flipped_bit_of_the_weights_is_found(nodes):
    path = nodes / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(EdgewiseError, match="is not as it was written"):
        load_model(nodes)


@pytest.mark.parametrize("name", ["metrics.json", "history.csv", "predictions.csv"])
def test_a_report_is_not_drawn_from_numbers_that_were_changed(nodes, name):
    path = nodes / name
    path.write_text(path.read_text().replace("1", "2"))
    with pytest.raises(EdgewiseError, match=r"is not as it was written|is damaged"):
        write_report(runs.open_run(nodes))


def test_settings_and_split_of_a_finished_run_are_those_it_was_trained_with(nodes):
    edited(nodes / "splits.json", lambda c: c["train"].pop(), seal=False)
    with pytest.raises(EdgewiseError, match="is not as it was written"):
        runs.reopen(runs.open_run(nodes))
    edited(nodes / "recipe.json", lambda c: c["settings"]["model"].update(hidden=3), seal=False)
    with pytest.raises(EdgewiseError, match="is not as it was written"):
        runs.open_run(nodes)


@pytest.mark.parametrize(
    "wrong", [{"center": [float("nan")]}, {"scale": [0.0]}, {"center": [float("inf")]}]
)
def test_a_scale_that_is_no_number_is_refused_also_with_its_checksum(files, tmp_path, wrong):
    folder = shutil.copytree(files / "run", tmp_path / "run")
    edited(folder / "model.json", lambda c: c["task"].update(wrong))
    with pytest.raises(EdgewiseError, match="is not a saved model"):
        load_model(folder)


@pytest.mark.parametrize(
    "wrong", [{"members": 10**9}, {"features": 10**9}, {"channels": 10**9}, {"members": 10**30}]
)
def test_sizes_beyond_the_weights_allocate_nothing(nodes, wrong):
    import resource

    edited(nodes / "model.json", lambda c: c.update(wrong))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(EdgewiseError):
        load_model(nodes)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 500 * 1024  # kB; the weights asked for would take gigabytes


def test_a_renamed_tensor_of_a_checkpoint_is_a_sentence(files, tmp_path):
    folder = shutil.copytree(files / "half", tmp_path / "half")
    path = folder / "checkpoint" / "member-0.safetensors"
    tensors = load_file(path)
    tensors["adam.x.step"] = tensors.pop("adam.0.step")
    save_file(tensors, path)
    with pytest.raises(EdgewiseError, match="does not fit the run"):
        runs.resume(folder)


def test_a_checkpoint_folder_that_is_a_link_is_not_written_through(files, tmp_path):
    folder = shutil.copytree(files / "half", tmp_path / "half")
    elsewhere = shutil.move(folder / "checkpoint", tmp_path / "elsewhere")
    (folder / "checkpoint").symlink_to(elsewhere)
    before = {p.name: p.read_bytes() for p in elsewhere.iterdir()}
    with pytest.raises(EdgewiseError, match="is a link"):
        runs.resume(folder)
    assert {p.name: p.read_bytes() for p in elsewhere.iterdir()} == before


@pytest.mark.parametrize("name", ["nodes/recipe.json", "nodes/metrics.json", "nodes/model.json",
                                  "nodes/model.safetensors", "nodes/reader.json",
                                  "nodes/splits.json", "nodes/manifest.json", "nodes/history.csv",
                                  "nodes/predictions.csv", "study.json", "journal.jsonl",
                                  "estimator.json"])  # fmt: skip
def test_a_link_is_not_followed_out_of_a_folder(files, tmp_path, name):
    (target,) = (one for one in targets(files) if one.name == name)
    moved = tmp_path / "moved"
    shutil.move(target.path, moved)
    target.path.symlink_to(moved)
    before = moved.read_bytes()
    try:
        with pytest.raises(EdgewiseError, match="is a link"):
            target.read()
        assert moved.read_bytes() == before
    finally:
        target.path.unlink()
        shutil.move(moved, target.path)


def test_a_lock_that_is_a_link_does_not_empty_what_it_leads_to(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "mine.txt")
    with pytest.raises(EdgewiseError, match="is a link"), alone_in(tmp_path / "run", "training"):
        pass
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "text",
    [
        f"target = {DEEP}",
        "target = " + "{a=" * 100_000 + "1" + "}" * 100_000,
        ".".join("a" * 4_000) + " = 1",
        "[" + ".".join("a" * 4_000) + "]\nx = 1",
        "epochs = " + "9" * 10_000,
        "epochs = " + "9" * 400,
        "hidden = nan",
        "dropout = inf",
        "seed = 1979-05-27",
        f"layer = '{'x' * 100_000}'",
        "x = 1\n" * 200_000,
    ],
)
def test_a_config_that_no_one_writes_is_one_sentence(tmp_path, text):
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(EdgewiseError) as error:
        ew.make_settings("node", **read_config(path))
    assert len(str(error.value)) < 2000


def test_brackets_in_names_are_no_nesting(tmp_path):
    classes = [f"[{n}, {n + 1})" for n in range(0, 100)]
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"classes": classes, "more": '\\"[[[[' * 30}))
    assert read_json(path, {"classes": [str]})["classes"] == classes


@pytest.mark.parametrize(
    "text", ["[NaN]", "[Infinity]", "[1e999]", f"[{'9' * 5000}]", '["\\ud800"]']
)
def test_what_no_other_reader_of_json_takes_is_refused(text):
    with pytest.raises(EdgewiseError):
        parse_json(text, [object])


def test_a_split_of_words_or_of_huge_numbers_is_one_sentence(tmp_path):
    path = tmp_path / "splits.json"
    for rows in (["a"], [1.5], [10**30], [[1]], "abc", [None], [True, 1]):
        path.write_text(json.dumps({"train": rows, "validation": [], "test": []}))
        with pytest.raises(EdgewiseError):
            load_split(path)


def test_a_file_larger_than_any_of_ours_is_not_read(nodes):
    path = nodes / "metrics.json"
    with path.open("wb") as stream:
        os.truncate(stream.fileno(), 2**40)
    with pytest.raises(EdgewiseError, match="more than"):
        _ = runs.open_run(nodes).metrics
