"""Data on their way through a network: a graph whole, molecules in batches."""

import torch
from torch import Tensor

from edgewise.core.recipe import Architecture, Recipe
from edgewise.data.packed import MoleculeSet
from edgewise.graphs.channels import directed_channels, go_both_ways, undirected_channels
from edgewise.graphs.features import compact_features
from edgewise.graphs.graph import Graph
from edgewise.nn.layers import Features
from edgewise.nn.networks import GraphModel, Network, NodeModel
from edgewise.nn.operators import Operator, cut, without_lone_loops

EVALUATION_BATCH = 256  # molecules at a time where no gradient is needed
# Atoms times channels up to which a set's operators are kept. Attention on Tox21, 5.2 million of
# them, holds 0.7 GiB.
MOST_ROWS = 8_000_000


def build_model(kind: str, features: int, outputs: int, channels: int, recipe: Recipe) -> Network:
    """The network of a recipe for ``"nodes"`` or ``"molecules"``, with fresh weights."""
    if kind == "nodes":
        width = channels * (3 if recipe.directed else 1)
        return NodeModel(features, outputs, width, recipe)
    return GraphModel(features, outputs, channels, recipe, pooling=recipe.pooling)


def graph_inputs(
    graph: Graph, architecture: Architecture, model: NodeModel
) -> tuple[Features, list[Operator]]:
    """Features and operators of a graph, as a model propagates them.

    Without direction a pair weighs the sum of its two ways; where every edge has its like on the
    way back, it is one edge that was written twice, and weighs what is written.
    """
    edge_index, edge_attr = graph.edge_index, graph.edge_attr
    if architecture.directed:
        edge_index, edge_attr = directed_channels(edge_index, edge_attr)
    elif not go_both_ways(edge_index, edge_attr):
        edge_index, edge_attr = undirected_channels(edge_index, edge_attr)
    return compact_features(graph.x), model.operators(edge_index, edge_attr, graph.num_nodes)


def molecule_operator(model: GraphModel, molecules: MoleculeSet) -> Operator | None:
    """The operator of all molecules at once, to cut batches from; None if they are too many."""
    if len(molecules.x) * model.edge_channels > MOST_ROWS:
        return None
    b = molecules.batch(torch.arange(len(molecules)))
    operator, *_ = model.operators(b.edge_index, b.edge_attr, len(b.x))  # all layers share it
    return operator if model.architecture.dropout > 0 else without_lone_loops(operator)


def propagate_batch(
    model: GraphModel, molecules: MoleculeSet, rows: Tensor, operator: Operator | None
) -> Tensor:
    """The outputs of a model for one batch, along the operator of :func:`molecule_operator`."""
    b = molecules.batch(rows)
    if operator is None:
        return model(b.x, b.edge_index, b.edge_attr, b.graph, b.num_graphs)
    edges = cut(operator, molecules.node_offset, rows)
    return model.propagate(b.x, [edges] * len(model.layers), b.graph, b.num_graphs)


@torch.no_grad()
def molecule_outputs(
    model: GraphModel,
    molecules: MoleculeSet,
    rows: Tensor,
    operator: Operator | None = None,
) -> Tensor:
    """The outputs of a model for some molecules, in their order."""
    model.eval()
    parts = [
        propagate_batch(model, molecules, chosen, operator)
        for chosen in (rows.split(EVALUATION_BATCH) if len(rows) else ())
    ]
    return torch.cat(parts) if parts else torch.zeros(0, model.head.out_features)
