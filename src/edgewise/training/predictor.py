"""A trained model: its networks, how its input is read, what its outputs mean. Saves and loads."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from edgewise.core.devices import find_device
from edgewise.core.errors import EdgewiseError, NotRegistered
from edgewise.core.files import inside, write_atomically
from edgewise.core.manifest import check_manifest, write_manifest
from edgewise.core.registries import UNITS
from edgewise.core.schema import Maybe, read_json
from edgewise.core.settings import Settings, load_settings
from edgewise.graphs.batch import Batches
from edgewise.nn.network import Network
from edgewise.tasks.base import Prediction, Task, load_task
from edgewise.training.legacy import FORMAT_0_1, UNITS_0_1, settings_0_1
from edgewise.training.weights import load_members, reason_of
from edgewise.units.base import Problem, Unit

FORMAT = "edgewise model 2"
_SHAPE = {
    **{"format": str, "features": int, "channels": int, "members": int},
    "task": {
        **{"kind": str, "names": [str], "classes": Maybe([str])},
        **{"center": Maybe([float]), "scale": Maybe([float])},
    },
    **{"unit": Maybe(str), "settings": Maybe({str: {str: object}})},
    "encoder": Maybe(str),  # its file, or nothing; until 0.2 the only one that the unit has
    **{"kind": Maybe(str), "recipe": Maybe({str: object})},  # of version 0.1
}


@dataclass(frozen=True, eq=False)
class Predictor:
    """Everything that predicting needs.

    Args:
        unit: What a row is.
        settings: How it was trained.
        task: What it predicts.
        features: Width of its nodes.
        channels: Edge channels it expects, before direction is encoded.
        members: Its networks, one or an ensemble.
        encoder: What was learnt about the columns of the data; None: they came ready.
    """

    unit: Unit
    settings: Settings
    task: Task
    features: int
    channels: int
    members: tuple[Network, ...]
    encoder: Any = None

    @property
    def device(self) -> torch.device:
        return find_device(self.settings.training.device)

    def on(self, device: str) -> "Predictor":
        """The same model on a device: ``auto``, ``cpu``, ``cuda`` or ``mps``."""
        find_device(device)
        return replace(self, settings=self.settings.changed(device=device))

    @torch.no_grad()
    def predict(self, data: Any) -> Prediction:
        """Predict every row.

        Args:
            data: A :class:`~edgewise.Graph` for a model of nodes; SMILES for one of molecules.
        """
        batches = self._data(data)
        rows = torch.arange(len(batches))
        outputs = []
        for model in self.members:
            model.to(batches.device).eval()
            parts = [self.task.decode(model(b)) for b in batches.evaluation_batches(rows)]
            empty = torch.zeros(0, self.task.width)
            outputs.append((torch.cat(parts).cpu() if parts else empty).double().numpy())
        every = np.stack(outputs)
        return Prediction(every.mean(axis=0), every.std(axis=0) if len(every) > 1 else None)

    @torch.no_grad()
    def embeddings(self, data: Any, rows: np.ndarray | None = None) -> np.ndarray:
        """Embeddings of rows (by default of all): the input of the first member's last layer."""
        batches = self._data(data)
        chosen = torch.arange(len(batches)) if rows is None else torch.from_numpy(rows)
        model = self.members[0].to(batches.device).eval()
        parts = [model.represent(batch) for batch in batches.evaluation_batches(chosen)]
        return torch.cat(parts).cpu().numpy()

    def _data(self, data: Any) -> Batches:
        if not hasattr(data, "evaluation_batches"):
            data = self.unit.as_data(data, self.encoder, self.device)
        batches: Batches = data
        widths = (batches.num_features, batches.num_channels)
        if widths != (self.features, self.channels):
            raise EdgewiseError(
                f"the data have {widths[0]} features and {widths[1]} edge channels, but the model "
                f"was trained on {self.features} and {self.channels}; give the same columns"
            )
        return batches

    def save(self, folder: str | Path) -> None:
        """Write the model into a folder: safetensors and JSON, no pickle."""
        from safetensors.torch import save

        folder = Path(folder)
        tensors = {
            f"{number}.{name}": tensor.cpu().contiguous()
            for number, model in enumerate(self.members)
            for name, tensor in model.state_dict().items()
        }
        encoder_file = "" if self.encoder is None else file_of(self.unit, self.encoder)
        content = {
            "format": FORMAT,
            "unit": self.unit.name,
            "encoder": encoder_file,
            "features": self.features,
            "channels": self.channels,
            "members": len(self.members),
            "task": self.task.to_json(),
            "settings": self.settings.to_json(),
        }
        names = ["model.safetensors", "model.json"]
        if self.encoder is not None:
            names.append(encoder_file)
            encoder = json.dumps(self.encoder.to_json(), indent=1)
            write_atomically(folder / encoder_file, encoder)
        write_atomically(folder / "model.safetensors", save(tensors))
        write_atomically(folder / "model.json", json.dumps(content, indent=1))
        write_manifest(folder, names)


def file_of(unit: Unit, encoder: Any) -> str:
    """The name of the file that an encoder is saved in."""
    name: str = getattr(encoder, "file", unit.encoder_file)
    return name


def make_predictor(problem: Problem, members: tuple[Network, ...]) -> Predictor:
    """Trained networks, with what their problem knows about input and output."""
    widths = problem.data.num_features, problem.data.num_channels
    return Predictor(
        problem.unit, problem.settings, problem.task, *widths, members, problem.encoder
    )


def load_model(folder: str | Path, device: str = "") -> Predictor:
    """Read a model that :meth:`Predictor.save` or a run wrote; a damaged one is refused.

    Args:
        folder: Of a run, or of a saved model.
        device: Where it is to predict; without it as in training.
    """
    folder = Path(folder)
    place = folder / "model.json"
    try:
        content = read_json(inside(folder, "model.json"), _SHAPE)
        old = content["format"] == FORMAT_0_1
        if not old and content["format"] != FORMAT:
            raise EdgewiseError(
                f"it says {content['format']!r}, and this version reads {FORMAT!r}; use the "
                "version of Edgewise that wrote it"
            )
        unit: Unit = UNITS[UNITS_0_1[content["kind"]] if old else content["unit"]]
        settings = (
            settings_0_1(content["recipe"], content["kind"])
            if old
            else load_settings(content["settings"])
        )
        task = load_task(content["task"])
        widths = content["features"], content["channels"]
        if min(*widths, content["members"]) < 1:
            raise EdgewiseError("its widths make no sense")
        encoder_file = content.get("encoder", unit.encoder_file)
        if encoder_file not in ("", unit.encoder_file, *unit.encoder_files):
            raise EdgewiseError(f"it names the encoder {encoder_file!r}")
    except FileNotFoundError as error:
        raise EdgewiseError(f"{folder} holds no model{_cure(folder)}") from error
    except NotRegistered as error:
        raise EdgewiseError(f"{place}: {error}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise EdgewiseError(
            f"{place} is not a saved model ({reason_of(error)}); train it again"
        ) from error
    if not old:  # version 0.1 wrote no manifest
        check_manifest(folder, ["model.json", "model.safetensors"])
        if encoder_file and (folder / encoder_file).exists():
            check_manifest(folder, [encoder_file])
    encoder = unit.load_encoder(inside(folder, encoder_file)) if encoder_file else None
    try:
        # On no device: nothing is allocated before the sizes are known to be those of the file.
        with torch.device("meta"):
            model = unit.network(widths[0], task.width, widths[1], settings)
    except (RuntimeError, TypeError, OverflowError, ValueError) as error:
        raise EdgewiseError(
            f"{place} is not a saved model (no network has its sizes); train it again"
        ) from error
    members = load_members(inside(folder, "model.safetensors"), model, content["members"])
    found = Predictor(unit, settings, task, *widths, members, encoder)
    return found.on(device) if device else found


def _cure(folder: Path) -> str:
    if (folder / "metrics.json").exists():
        return "; its model.json is gone, so copy it back or train again"
    if (folder / "recipe.json").exists():
        return f" yet; finish it with edgewise train --resume {folder}"
    return "; give the folder of a run"
