"""The citation networks in numbers: their sizes, and the classes that are trained on."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.data.citation import load_citation
from edgewise.data.splits import random_split
from edgewise.graphs.graph import Graph
from edgewise.paper.printed import CITATION

Size = tuple[int, int, int, int]  # nodes, edges, features, classes


@dataclass(frozen=True)
class Networks:
    """What could be read, by data set; and why the others could not."""

    sizes: dict[str, Size]
    training_classes: dict[str, dict[str, int]]  # of the dense fixed split
    unavailable: dict[str, str]


def count_networks(datasets: Sequence[str] = CITATION) -> Networks:
    """Read the networks one after the other; one that is unavailable is left out."""
    sizes: dict[str, Size] = {}
    training_classes: dict[str, dict[str, int]] = {}
    unavailable: dict[str, str] = {}
    for dataset in datasets:
        try:
            graph, _ = load_citation(dataset)
        except EdgewiseError as error:
            unavailable[dataset] = str(error)
            continue
        training = random_split(graph.num_nodes, "dense", seed=0).train
        classes = class_counts(graph, training)
        sizes[dataset] = (graph.num_nodes, graph.num_edges, graph.num_features, len(classes))
        training_classes[dataset] = classes
    return Networks(sizes, training_classes, unavailable)


def class_counts(graph: Graph, rows: Tensor) -> dict[str, int]:
    """How many of these nodes each class has, by class name."""
    if graph.y is None or graph.class_names is None:
        raise EdgewiseError("the graph has no classes to count; give it y and class_names")
    labels = graph.y[rows]
    counts = torch.bincount(labels[labels >= 0], minlength=len(graph.class_names)).tolist()
    return dict(zip(graph.class_names, counts, strict=True))
