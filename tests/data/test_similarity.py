"""The distance of a molecule to the training set is that of its nearest neighbour there."""

import csv

import numpy as np
import pytest

from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.core.manifest import write_manifest
from edgewise.data import similarity
from edgewise.data.similarity import BITS, TrainingFingerprints, training_fingerprints
from edgewise.training import load_model

pytest.importorskip("rdkit")
TRAIN = ["CCO", "OCC", "CCCCN", "c1ccccc1O", "CC(=O)Oc1ccccc1C(=O)O"]
NEW = ["CCO", "CCCO", "c1ccccc1N", "CC(=O)O", "[Na+].[Cl-]"]


def slow_distance(one, others):
    """By sets of the bits that are on."""
    from rdkit import Chem
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    def on(text):
        made = GetMorganGenerator(radius=2, fpSize=BITS)
        return set(made.GetFingerprint(Chem.MolFromSmiles(text)).GetOnBits())

    return 1 - max(len(on(one) & on(other)) / len(on(one) | on(other)) for other in others)


def test_the_distance_is_that_to_the_most_similar_training_molecule():
    found = training_fingerprints(TRAIN).distances(NEW)
    assert found == pytest.approx([slow_distance(text, TRAIN) for text in NEW])
    assert found[0] == 0
    assert found[-1] == 1


def test_each_fingerprint_is_kept_once_and_not_more_than_a_limit(monkeypatch):
    assert training_fingerprints(TRAIN).bits.shape == (4, BITS // 8)  # two are the same alcohol
    monkeypatch.setattr(similarity, "MOST", 3)
    assert len(training_fingerprints(["C" * n for n in range(1, 9)]).bits) == 3


@pytest.mark.parametrize("bits", [np.zeros((2, 3), np.uint8), np.zeros((0, BITS // 8), np.uint8)])
def test_what_is_no_fingerprint_is_refused(bits):
    with pytest.raises(EdgewiseError, match="no fingerprints"):
        TrainingFingerprints(bits)


@pytest.mark.slow
def test_a_run_says_how_far_each_molecule_is_and_refuses_a_damaged_file(tmp_path):
    rows = [f"{'C' * n}{end},{n}.5" for n in range(1, 7) for end in ("O", "N", "Cl")]
    (tmp_path / "m.csv").write_text("\n".join(["smiles,v", *rows]))
    run = runs.train(tmp_path / "m.csv", tmp_path / "run", preset="paper", epochs=2, hidden=4)
    with (run.folder / "predictions.csv").open(newline="") as stream:
        written = list(csv.DictReader(stream))
    train = [row["smiles"] for row in written if row["split"] == "train"]
    for row in written:
        expected = slow_distance(row["smiles"], train)
        assert float(row["distance"]) == pytest.approx(expected, abs=1e-4)
    (tmp_path / "new.csv").write_text("smiles\nCCCCCCCCO\nnonsense\n")
    for asked in (True, False):
        runs.predict(run.folder, [str(tmp_path / "new.csv")], tmp_path / "out.csv", distance=asked)
        with (tmp_path / "out.csv").open(newline="") as stream:
            one, bad = csv.DictReader(stream)
        assert ("distance" in one) is asked
    assert bad["error"]
    path = run.folder / "training-fingerprints.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(EdgewiseError, match="checksum"):
        load_model(run.folder)
    write_manifest(run.folder, [path.name])
    with pytest.raises(EdgewiseError, match=r"training-fingerprints\.safetensors"):
        load_model(run.folder)
    path.unlink()
    with pytest.raises(EdgewiseError, match="checksum"):
        load_model(run.folder)
