"""Workers of a Ray cluster predict what one process predicts, also when one of them is killed."""

import os
import signal
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from run_toys import SMILES

from edgewise import runs
from edgewise.core.errors import EdgewiseError


def descendants_called(word):
    """Processes below this one whose name begins so."""
    parents, names = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rsplit(")")[-1].split()[1]
            )
            names[int(folder.name)] = (folder / "cmdline").read_text()
        except OSError:
            continue  # it ended

    def below(process):
        return process == os.getpid() or (process in parents and below(parents[process]))

    return [number for number, name in names.items() if name.startswith(word) and below(number)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Ray, about itself
@pytest.mark.skipif(sys.platform != "linux", reason="looks for the worker in /proc")
def test_a_worker_may_be_killed_and_rows_come_out_as_from_one_process(molecule_run, tmp_path):
    pytest.importorskip("ray", reason="needs the extra ray")
    parts = tmp_path / "parts"
    parts.mkdir()
    for part in range(2):
        rows = [f"{part}-{i},{SMILES[i % len(SMILES)]},é" for i in range(1500)]
        rows[7], rows[8] = "7,C(,x", "8,CC,x,y"
        (parts / f"{part}.csv").write_text("key,smiles,note\n" + "\n".join(rows) + "\n")
    killed = []

    def kill_one(*_):
        workers = descendants_called("ray::MapWorker") if not killed else []
        if workers:
            os.kill(workers[0], signal.SIGKILL)
            killed.append(workers[0])

    counts = runs.predict(
        molecule_run.folder, [str(parts)], tmp_path / "ray.csv", kill_one, engine="ray", workers=2
    )
    assert counts == runs.predict(molecule_run.folder, [str(parts)], tmp_path / "local.csv")
    assert counts == (2996, 4)
    assert killed
    assert (tmp_path / "ray.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()


def test_without_ray_its_extra_is_named(molecule_run, place, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "edgewise.runs.ray_engine", raising=False)
    data = [str(place / "molecules.csv")]
    with pytest.raises(EdgewiseError, match=r"pip install 'edgewise\[ray\]'"):
        runs.predict(molecule_run.folder, data, tmp_path / "out.csv", engine="ray")


def test_an_unknown_engine_is_refused(molecule_run, place, tmp_path):
    data = [str(place / "molecules.csv")]
    with pytest.raises(EdgewiseError, match="no engine 'spark'"):
        runs.predict(molecule_run.folder, data, tmp_path / "out.csv", engine="spark")


def test_other_units_than_molecules_are_not_for_ray(node_run, tmp_path):
    model = node_run.model()
    with pytest.raises(EdgewiseError, match="--engine ray are for files of molecules"):
        model.unit.stretches(model.settings, node_run.source)


def test_stretches_and_predictions_travel_as_bytes(molecule_run, tmp_path):
    from edgewise.data.sources import find_source
    from edgewise.runs.stretch_messages import (
        predicted_from_bytes,
        predicted_to_bytes,
        stretch_from_bytes,
        stretch_to_bytes,
    )
    from edgewise.units.base import Asked

    (tmp_path / "new.csv").write_bytes(b"smiles,note\nCCO,fine\nCCN,5 \xb5g\nC(,\n")
    source, model = find_source([str(tmp_path / "new.csv")], "graph"), molecule_run.model()
    (stretch,) = model.unit.stretches(model.settings, source)
    sent = stretch_from_bytes(stretch_to_bytes(stretch))
    assert (sent.broken, sent.done, sent.size) == (stretch.broken, stretch.done, stretch.size)
    assert dict(sent.table.columns) == dict(stretch.table.columns)
    some = model.unit.predicted_stretch(model, source, sent, Asked())
    back = predicted_from_bytes(predicted_to_bytes(some))
    assert (back.columns, back.good, back.bad) == (some.columns, 1, 2)
    assert {n: type(c) for n, c in back.columns.items()} == {
        n: type(c) for n, c in some.columns.items()
    }
    assert dict(back.table.columns) == dict(stretch.table.columns)


def test_parquet_keeps_the_types_and_holds_the_numbers_of_the_csv(molecule_run, tmp_path):
    import pyarrow as pa

    table = pa.table({"key": [1, None, 3], "smiles": ["CCO", "C(", "CCN"], "list": [[1], [], [2]]})
    pq.write_table(table, tmp_path / "new.parquet")
    data = [str(tmp_path / "new.parquet")]
    for name in ("out.parquet", "parts", "out.csv"):
        assert runs.predict(molecule_run.folder, data, tmp_path / name) == (2, 1)
    found = pq.read_table(tmp_path / "out.parquet")
    assert found == pq.read_table(tmp_path / "parts" / "part-00000.parquet")
    assert [found.schema.field(name).type for name in table.column_names] == table.schema.types
    assert found.select(table.column_names) == table
    from run_toys import rows_of

    written = [row["logp_predicted"] for row in rows_of(tmp_path / "out.csv")]
    assert found["logp_predicted"].to_pylist() == [float(written[0]), None, float(written[2])]
    assert found["error"].to_pylist()[::2] == ["", ""]
    with pytest.raises(EdgewiseError, match="is there already, and not empty"):
        runs.predict(molecule_run.folder, data, tmp_path / "parts")
    assert not list(tmp_path.glob(".part-*"))


def test_parts_of_a_table_are_one_table_whose_columns_agree(molecule_run, tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "_SUCCESS").write_text("")
    (parts / "b.csv").write_text("smiles,key\nCCN,2\n")
    (parts / "a.csv").write_text("smiles,key\nCCO,1\n")
    assert runs.predict(molecule_run.folder, [str(parts)], tmp_path / "out.parquet") == (2, 0)
    assert pq.read_table(tmp_path / "out.parquet")["key"].to_pylist() == ["1", "2"]
    (parts / "c.csv").write_text("smiles,name\nCCO,1\n")
    for out in ("out.csv", "out.parquet"):
        with pytest.raises(EdgewiseError, match=r"c\.csv has other columns .*key, name"):
            runs.predict(molecule_run.folder, [str(parts)], tmp_path / out)
