"""A fitted model: its networks, how its input is read, what its outputs mean. Saves and loads."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.files import write_atomically
from edgewise.core.recipe import Recipe, load_recipe
from edgewise.data.chemistry import MoleculeCodes
from edgewise.data.graph_reader import GraphReader, load_graph_reader
from edgewise.data.molecules import Featurizer, load_featurizer
from edgewise.data.packed import MoleculeSet, pack
from edgewise.graphs.graph import Graph
from edgewise.nn.networks import GraphModel, Network, NodeModel
from edgewise.problems import MoleculeProblem, NodeProblem, Problem
from edgewise.tasks import Task
from edgewise.training import EVALUATION_BATCH, build_model, graph_inputs, molecule_outputs

FORMAT = "edgewise model 1"


@dataclass(frozen=True, eq=False)
class Prediction:
    """What an ensemble says: the mean of its members, and how far they are apart."""

    mean: np.ndarray  # probabilities or values, [rows, outputs]
    spread: np.ndarray | None  # standard deviation over the members; None for a single one


@dataclass(frozen=True, eq=False)
class Fitted:
    """Everything that predicting needs.

    Args:
        recipe: How it was trained.
        task: What it predicts.
        features: Width of its nodes.
        channels: Edge channels it expects, before direction is encoded.
        members: Its networks, one or an ensemble.
        reader: For nodes from tables: how they are read.
        featurizer: For molecules: how they become numbers.
    """

    recipe: Recipe
    task: Task
    features: int
    channels: int
    members: tuple[Network, ...]
    reader: GraphReader | None = None
    featurizer: Featurizer | None = None

    @property
    def kind(self) -> str:
        """``"nodes"`` or ``"molecules"``."""
        return "nodes" if self.featurizer is None else "molecules"

    def predict_nodes(self, graph: Graph) -> Prediction:
        """Predict every node of a graph, the one of the training or another."""
        self._check_widths("graph", graph.num_features, graph.num_channels)
        outputs = []
        with torch.no_grad():
            for model in self.members:
                assert isinstance(model, NodeModel)
                model.eval()
                x, operators = graph_inputs(graph, self.recipe, model)
                outputs.append(model.propagate(x, operators))
        return self._joined(outputs)

    def predict_molecules(self, codes: MoleculeCodes) -> Prediction:
        """Predict molecules, in the order in which they were read."""
        if self.featurizer is None:
            raise EdgewiseError("this model predicts nodes of a graph, not molecules")
        return self.predict_set(pack(codes, self.featurizer))

    def predict_set(self, molecules: MoleculeSet) -> Prediction:
        """Predict molecules that are packed already."""
        self._check_widths("molecules", molecules.x.size(1), molecules.edge_attr.size(1))
        rows = torch.arange(len(molecules))
        graph_models = [model for model in self.members if isinstance(model, GraphModel)]
        return self._joined([molecule_outputs(model, molecules, rows) for model in graph_models])

    def predict_problem(self, problem: Problem) -> Prediction:
        """Predict every row of a problem."""
        if isinstance(problem, NodeProblem):
            return self.predict_nodes(problem.graph)
        return self.predict_set(problem.molecules)

    def embeddings(self, problem: Problem, rows: np.ndarray | None = None) -> np.ndarray:
        """Rows of a problem, all unless told, as the last layer of the first member meets them."""
        chosen = torch.arange(len(problem.truth)) if rows is None else torch.from_numpy(rows)
        model = self.members[0].eval()
        with torch.no_grad():
            if isinstance(problem, NodeProblem):
                assert isinstance(model, NodeModel)
                every = model.represent(*graph_inputs(problem.graph, self.recipe, model))
                return every[chosen].numpy()
            assert isinstance(model, GraphModel)
            parts = []
            for part in chosen.split(EVALUATION_BATCH):
                b = problem.molecules.batch(part)
                operators = model.operators(b.edge_index, b.edge_attr, len(b.x))
                parts.append(model.represent(b.x, operators, b.graph, b.num_graphs))
        return torch.cat(parts).numpy()

    def _joined(self, outputs: list[Tensor]) -> Prediction:
        every = np.stack([self.task.meaning(output).double().numpy() for output in outputs])
        return Prediction(every.mean(axis=0), every.std(axis=0) if len(every) > 1 else None)

    def _check_widths(self, what: str, features: int, channels: int) -> None:
        if self.kind != ("nodes" if what == "graph" else "molecules"):
            raise EdgewiseError(f"this model was trained on {self.kind}; give it those")
        if (features, channels) != (self.features, self.channels):
            raise EdgewiseError(
                f"the {what} has {features} features and {channels} edge channels, but the model "
                f"was trained on {self.features} and {self.channels}; give the same columns"
            )

    def save(self, folder: str | Path) -> None:
        """Write the model into a folder: safetensors and JSON, no pickle."""
        from safetensors.torch import save

        folder = Path(folder)
        tensors = {
            f"{number}.{name}": tensor.contiguous()
            for number, model in enumerate(self.members)
            for name, tensor in model.state_dict().items()
        }
        content = {
            "format": FORMAT,
            "kind": self.kind,
            "features": self.features,
            "channels": self.channels,
            "members": len(self.members),
            "task": self.task.to_json(),
            "recipe": self.recipe.to_json(),
        }
        if self.reader is not None:
            write_atomically(folder / "reader.json", json.dumps(self.reader.to_json(), indent=1))
        if self.featurizer is not None:
            write_atomically(folder / "featurizer.json", json.dumps(self.featurizer.to_json()))
        write_atomically(folder / "model.safetensors", save(tensors))
        write_atomically(folder / "model.json", json.dumps(content, indent=1))


def fitted(problem: Problem, recipe: Recipe, members: tuple[Network, ...]) -> Fitted:
    """Trained networks, with what their problem knows about input and output."""
    if isinstance(problem, MoleculeProblem):
        widths = (problem.molecules.x.size(1), problem.molecules.edge_attr.size(1))
        return Fitted(recipe, problem.task, *widths, members, featurizer=problem.featurizer)
    graph = problem.graph
    widths = (graph.num_features, graph.num_channels)
    return Fitted(recipe, problem.task, *widths, members, reader=problem.reader)


def load_model(folder: str | Path) -> Fitted:
    """Read a model that :meth:`Fitted.save` or a run wrote; a damaged one is refused."""
    folder = Path(folder)
    place = folder / "model.json"
    try:
        content = json.loads(place.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise EdgewiseError(f"it says {content['format']!r}, expected {FORMAT!r}")
        recipe, task = load_recipe(content["recipe"]), Task.from_json(content["task"])
        kind, features, channels, members = (
            content[name] for name in ("kind", "features", "channels", "members")
        )
        if kind not in ("nodes", "molecules") or min(features, channels, members) < 1:
            raise EdgewiseError("its kind or its widths make no sense")
    except FileNotFoundError as error:
        if (folder / "metrics.json").exists():
            cure = "; its model.json is gone, so copy it back or train again"
        elif (folder / "recipe.json").exists():
            cure = f" yet; finish it with edgewise train --resume {folder}"
        else:
            cure = "; give the folder of a run"
        raise EdgewiseError(f"{folder} holds no model{cure}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EdgewiseError(
            f"{place} is not a saved model ({_reason(error)}); train it again"
        ) from error
    reader = (
        load_graph_reader(folder / "reader.json") if (folder / "reader.json").exists() else None
    )
    featurizer = load_featurizer(folder / "featurizer.json") if kind == "molecules" else None
    models = tuple(
        build_model(kind, features, task.width, channels, recipe) for _ in range(members)
    )
    _load_weights(folder / "model.safetensors", models)
    return Fitted(recipe, task, features, channels, models, reader, featurizer)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file; anything else, a renamed pickle too, is refused."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(path.read_bytes())
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise EdgewiseError(
            f"{path} is not a whole safetensors file ({_reason(error)}); it was cut short, changed "
            "or is something else, so it is not used: copy it again, or train again"
        ) from error


def _load_weights(path: Path, models: tuple[Network, ...]) -> None:
    tensors = read_tensors(path)
    expected = {
        f"{number}.{name}": tensor
        for number, model in enumerate(models)
        for name, tensor in model.state_dict().items()
    }
    odd = sorted(set(tensors) ^ set(expected))
    if odd:
        raise EdgewiseError(
            f"{path} does not fit model.json: tensor(s) {preview(odd)} are missing, or have no "
            "place; train again"
        )
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape or tensor.dtype != expected[name].dtype:
            raise EdgewiseError(
                f"{path}: {name} is {tensor.dtype}{list(tensor.shape)}, but model.json asks for "
                f"{expected[name].dtype}{list(expected[name].shape)}; train again"
            )
        if not bool(tensor.isfinite().all()):
            raise EdgewiseError(f"{path}: {name} holds numbers that are not finite; train again")
        expected[name].copy_(tensor)


def _reason(error: Exception) -> str:
    text: Any = f"no {error}" if isinstance(error, KeyError) else error
    return str(text).splitlines()[0].rstrip(".") if str(text) else type(error).__name__
