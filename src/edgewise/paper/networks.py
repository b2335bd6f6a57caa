"""The citation networks in numbers: their sizes, and the classes that are trained on."""

from collections.abc import Sequence
from dataclasses import dataclass

from edgewise.core.errors import EdgewiseError
from edgewise.data.citation import load_citation
from edgewise.data.splits import random_split
from edgewise.paper.printed import CITATION
from edgewise.plots import class_counts

Size = tuple[int, int, int, int]  # nodes, edges, features, classes


@dataclass(frozen=True)
class Networks:
    """What could be read, by data set; and why the others could not."""

    sizes: dict[str, Size]
    training_classes: dict[str, dict[str, int]]  # of the dense fixed split
    unavailable: dict[str, str]


def count_networks(datasets: Sequence[str] = CITATION) -> Networks:
    """Read the networks one after the other; one that cannot be had is left out."""
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
