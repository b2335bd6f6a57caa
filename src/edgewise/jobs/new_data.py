"""Data for a model that is trained already: read as it learnt to, its truth as it knows it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.citation import load_citation
from edgewise.data.graph_files import load_graph
from edgewise.data.sources import Source
from edgewise.fitted import Fitted
from edgewise.graphs.graph import Graph
from edgewise.problems import read_graph_tables

Tell = Callable[[str], None]


def reading(model: Fitted, encoding: str) -> Fitted:
    """The model, reading text files of this encoding."""
    recipe = replace(model.recipe, encoding=encoding or model.recipe.encoding)
    return replace(model, recipe=recipe)


def check_kind(model: Fitted, source: Source, smiles_column: str) -> None:
    """Refuse molecules where the model predicts nodes, and the other way round."""
    if model.kind != source.kind:
        words = {"nodes": "nodes of a graph", "molecules": "molecules"}
        raise EdgewiseError(
            f"the model predicts {words[model.kind]}, but {source} holds {words[source.kind]}; "
            "give data of the same kind"
        )
    if smiles_column and model.kind == "nodes":
        raise EdgewiseError(f"nodes have no SMILES; leave out smiles_column = {smiles_column!r}")


def read_graph(model: Fitted, source: Source, tell: Tell) -> Graph:
    """A graph as the model reads it; the label column may be absent."""
    if source.form == "citation":
        return load_citation(source.places[0])[0]
    if source.form == "graph":
        return load_graph(source.places[0])
    if model.reader is None:
        raise EdgewiseError(
            "this model was not trained on tables, so it cannot read them; give a data set's name "
            "or a .safetensors graph with the same columns"
        )
    nodes, edges, _ = read_graph_tables(source, model.recipe.encoding)
    graph, notes = model.reader.read(nodes, edges)
    if notes.mended:
        tell(str(notes))
    return graph


def node_truth(model: Fitted, graph: Graph) -> np.ndarray:
    """The labels of a graph as the model numbers them: by the names of the classes."""
    if graph.y is None:
        raise EdgewiseError("the graph has no labels to compare with; give the label column")
    task, labels = model.task, graph.y.numpy()
    if (task.kind == "classification") == graph.y.is_floating_point():
        held = "values" if graph.y.is_floating_point() else "class numbers"
        raise EdgewiseError(f"the labels of the graph are {held}, but the model learnt {task}")
    if task.kind != "classification":
        return labels.reshape(-1, 1)
    names = graph.class_names or tuple(map(str, range(labels.max(initial=-1) + 1)))
    present = [names[number] for number in np.unique(labels[labels >= 0])]
    strangers = [name for name in present if name not in task.classes]
    if strangers:
        raise EdgewiseError(
            f"the model does not know the class(es) {preview(strangers)}; it learnt "
            f"{preview(task.classes)}, so give the graph class_names such as these"
        )
    numbers = [task.classes.index(name) if name in task.classes else -1 for name in names]
    return np.array([*numbers, -1])[labels]  # -1, unknown, finds the last
