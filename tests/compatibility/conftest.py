"""What version 0.1.0 wrote, copied to where a test may change it, beside the data it names."""

import json
import shutil
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[1] / "fixtures" / "0.1.0"


@pytest.fixture
def old(tmp_path):
    """A copy of the fixtures, whose runs name the copied data."""
    folder = tmp_path / "old"
    shutil.copytree(FIXTURES, folder)
    for path in (*folder.glob("*/recipe.json"), folder / "study" / "study.json"):
        content = json.loads(path.read_text())
        data = content["data"]
        data["places"] = [str(folder / Path(place).name) for place in data["places"]]
        path.write_text(json.dumps(content, indent=1))
    return folder
