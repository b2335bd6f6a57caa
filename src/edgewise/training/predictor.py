"""A trained model: its networks, how its input is read, what its outputs mean. Saves and loads."""

import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.core.devices import find_device
from edgewise.core.errors import EdgewiseError, NotRegistered
from edgewise.core.files import inside, write_atomically
from edgewise.core.manifest import check_listed, check_manifest, write_manifest
from edgewise.core.registries import UNITS
from edgewise.core.schema import Maybe, read_json
from edgewise.core.settings import Settings, load_settings
from edgewise.graphs.batch import Batch, Batches, computed_rows
from edgewise.nn.network import Network
from edgewise.tasks.base import Prediction, Task, load_task
from edgewise.tasks.conformal import calibrated
from edgewise.tasks.prediction import CONFORMAL_SHAPE, Conformal, load_conformal
from edgewise.training.legacy import FORMAT_0_1, UNITS_0_1, settings_0_1
from edgewise.training.stack import FILE as STACK_FILE
from edgewise.training.stack import Stack, fit_stack, load_stack
from edgewise.training.trainer import model_outputs
from edgewise.training.weights import load_members, read_tensors, reason_of
from edgewise.units.base import Problem, Unit

FORMAT = "edgewise model 2"
_SHAPE = {
    **{"format": str, "features": int, "channels": int, "members": int},
    "task": {
        **{"kind": str, "names": [str], "classes": Maybe([str])},
        **{"center": Maybe([float]), "scale": Maybe([float])},
    },
    "conformal": Maybe((CONFORMAL_SHAPE, None)),
    **{"unit": Maybe(str), "settings": Maybe({str: {str: object}}), "stack": Maybe(float)},
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
        conformal: What the validation rows say about its uncertainty.
        reference: What is kept of the training rows, to tell how far others are from them.
        stack: A regression on descriptors of molecules that has its share in the predictions.
    """

    unit: Unit
    settings: Settings
    task: Task
    features: int
    channels: int
    members: tuple[Network, ...]
    encoder: Any = None
    conformal: Conformal | None = None
    reference: Any = None
    stack: Stack | None = None

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
            found = computed_rows(batches, rows, partial(self._decoded, model))
            found = torch.zeros(0, self.task.width) if found is None else found
            outputs.append(found.cpu().double().numpy())
        every = np.stack(outputs)
        mean, deviation = every.mean(axis=0), every.std(axis=0) if len(every) > 1 else None
        if self.stack is not None:
            # The deviation stays that of the networks: a large share of something that is always
            # the same would make them look certain.
            mean = self.stack.blend(mean, batches.ids)
        return Prediction(mean, deviation, self.conformal)

    def calibrated(self, problem: Problem) -> tuple["Predictor", Prediction]:
        """The model with intervals or sets learnt from validation rows, and what it predicts."""
        raw = replace(self, conformal=None).predict(problem.data)
        coverage = problem.settings.training.coverage
        found = calibrated(self.task, raw, problem.truth.numpy(), problem.split, coverage)
        return replace(self, conformal=found.conformal), found

    def _decoded(self, model: Network, batch: Batch) -> Tensor:
        return self.task.decode(model(batch))

    @torch.no_grad()
    def embeddings(self, data: Any, rows: np.ndarray | None = None) -> np.ndarray:
        """Embeddings of rows (by default of all): the input of the first member's last layer."""
        batches = self._data(data)
        chosen = torch.arange(len(batches)) if rows is None else torch.from_numpy(rows)
        model = self.members[0].to(batches.device).eval()
        found = computed_rows(batches, chosen, model.represent)
        return np.zeros((0, 1), dtype=np.float32) if found is None else found.cpu().numpy()

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
            "conformal": None if self.conformal is None else self.conformal.to_json(),
            "settings": self.settings.to_json(),
        }
        names = ["model.safetensors", "model.json"]
        if self.stack is not None:
            names.append(STACK_FILE)
            content["stack"] = self.stack.weight
            self.stack.save(folder)
        if self.encoder is not None:
            names.append(encoder_file)
            encoder = json.dumps(self.encoder.to_json(), indent=1)
            write_atomically(folder / encoder_file, encoder)
        if self.reference is not None:
            names.append(self.unit.reference_file)
            bits = {"bits": torch.from_numpy(self.reference.bits)}
            write_atomically(folder / self.unit.reference_file, save(bits))
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
    alone = Predictor(
        problem.unit,
        problem.settings,
        problem.task,
        *widths,
        members,
        problem.encoder,
        reference=problem.unit.reference(problem),
    )
    if problem.settings.model.descriptors == "none" or not problem.unit.are_molecules(problem):
        return alone
    outputs = [
        problem.task.decode(model_outputs(member, problem, problem.split.validation))
        for member in members
    ]
    predicted = torch.stack(outputs).mean(dim=0).cpu().double().numpy()
    return replace(alone, stack=fit_stack(problem, predicted))


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
        conformal = None
        if content.get("conformal") is not None:  # version 0.1 wrote none
            sizes = len(task.score_names), task.width
            conformal = load_conformal(content["conformal"], *sizes)
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
    reference = _reference(folder, unit)
    try:
        # On no device: nothing is allocated before the sizes are known to be those of the file.
        with torch.device("meta"):
            model = unit.network(widths[0], task.width, widths[1], settings)
    except (RuntimeError, TypeError, OverflowError, ValueError) as error:
        raise EdgewiseError(
            f"{place} is not a saved model (no network has its sizes); train it again"
        ) from error
    members = load_members(inside(folder, "model.safetensors"), model, content["members"])
    stack = None
    if content.get("stack") is not None:
        check_manifest(folder, [STACK_FILE])
        stack = load_stack(folder, task)
    found = Predictor(unit, settings, task, *widths, members, encoder, conformal, reference, stack)
    return found.on(device) if device else found


def _reference(folder: Path, unit: Unit) -> Any:
    """What the folder keeps of the training rows; older models keep nothing."""
    name = unit.reference_file
    if not name:
        return None
    check_listed(folder, [name])
    path = inside(folder, name)
    if not path.exists():
        return None
    check_manifest(folder, [name])
    try:
        return unit.load_reference(read_tensors(path))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise EdgewiseError(f"{path} cannot be used ({reason_of(error)}); train again") from error


def _cure(folder: Path) -> str:
    if (folder / "metrics.json").exists():
        return "; its model.json is gone, so copy it back or train again"
    if (folder / "recipe.json").exists():
        return f" yet; finish it with edgewise train --resume {folder}"
    return "; give the folder of a run"
