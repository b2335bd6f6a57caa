"""A network on many small graphs: nodes that it cannot tell apart are computed once.

Exact, so that nothing but the order of sums differs from computing each node: batch normalisation
counts every colour as often as it occurs. See :mod:`edgewise.kernels.colours`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import relu

from edgewise.core.team import ALONE
from edgewise.graphs.features import Features
from edgewise.kernels import backend
from edgewise.kernels.batch_norm import norm_and_add
from edgewise.kernels.coloured_block import ColouredBlock, Plan
from edgewise.kernels.colours import Groups, Level, Refinement, refine
from edgewise.nn.blocks import ACTIVATIONS, BatchNorm, Block
from edgewise.nn.edge_state import EdgeState

_NOWHERE = np.zeros(0, dtype=np.uint32)  # the parents of rows that have none


def colours_of(x: Features, edge_index: Tensor, edge_attr: Tensor, depth: int) -> Refinement | None:
    """The colours of a batch through so many layers; None where compiled kernels cannot be used.

    Nor are there any where a gradient on the input is wanted, which differs for equal nodes.
    """
    if not isinstance(x, Tensor) or not len(edge_attr) or torch.is_autocast_enabled("cpu"):
        return None
    if x.requires_grad or edge_attr.requires_grad or not backend.compiled(x, edge_attr):
        return None
    return refine(x, edge_index, edge_attr, depth)


def through_blocks(
    blocks: Sequence[Block], refinement: Refinement, x: Tensor, edges: Tensor
) -> Float[Tensor, "nodes width"]:
    """The features of all nodes behind the blocks.

    Args:
        blocks: Those of a network.
        refinement: The colours of its nodes and edges.
        x: Of each colour of nodes before the first block.
        edges: Of each colour of edges before the first block.
    """
    for block, level in zip(blocks, refinement.levels, strict=True):
        x, edges = _through(block, level, x, edges)
    return x.index_select(0, refinement.colour)


def _through(block: Block, level: Level, x: Tensor, edges: Tensor) -> tuple[Tensor, Any]:
    parts = _at_once(block)
    if parts is not None:
        (channels, *weights), norm, between, edge_norm, wide, narrow = parts
        hands_on, team = block.layer.hands_edges_on, ALONE if norm is None else norm.team
        adds = block.residual and x.size(1) == block.layer.out_width
        adds_edges = block.residual and edges.size(1) == block.layer.edge_width
        plan = Plan(level, channels, norm, between, edge_norm, hands_on, adds, adds_edges,
                    block.training, team)  # fmt: skip
        of_norms = [
            (None, None) if module is None else (module.weight, module.bias)
            for module in (norm, between, edge_norm)
        ]
        return ColouredBlock.apply(
            *(plan, x, edges, *weights),
            *(wide.weight, wide.bias, narrow.weight, narrow.bias),
            *(parameter for pair in of_norms for parameter in pair),
        )
    out, handed_on = block.layer.advance(x, EdgeState(level, edges))
    before = x if block.residual and x.size(1) == out.size(1) else None
    out = _updated(block, block.norm, out, level.node_count, before, level.parent, level.children)
    if block.feed_forward is not None:
        out = out + _fed_forward(block.feed_forward, out, level.node_count)
    if handed_on is None:
        return out, None
    state = handed_on.features
    before = edges if block.residual and edges.shape[1] == state.shape[1] else None
    places = level.edge_parent, level.edge_children
    return out, _updated(block, block.edge_norm, state, level.edge_count, before, *places)


def _at_once(block: Block) -> tuple[Any, ...] | None:
    """Layer, norms and linear layers of a block that is computed at once; None for others."""
    weights, modules = block.layer.gated_weights, block.feed_forward
    if weights is None or block.activation != "relu" or modules is None or block.root is not None:
        return None
    *before, wide, narrow = [
        module for module in modules.children() if not isinstance(module, nn.Dropout | nn.ReLU)
    ]
    norms = [block.norm, before[0] if before else None, block.edge_norm]
    if not all(norm is None or isinstance(norm, BatchNorm) for norm in norms):
        return None
    return weights, *norms, wide, narrow


def _updated(
    block: Block, norm: nn.Module | None, x: Tensor, count: Tensor, before: Tensor | None,
    parent: Any, children: Groups,
) -> Tensor:  # fmt: skip
    """Norm, activation and residual, as :meth:`Block.forward` has them."""
    adds = {"before": before, "parent": parent, "children": children}
    if isinstance(norm, BatchNorm) and block.activation == "relu":
        return norm_and_add(
            x, count, norm, relu=True, training=block.training, team=norm.team, **adds
        )
    x = _normed(norm, x, count, training=block.training)
    x = ACTIVATIONS[block.activation](x) if block.activation else x
    if before is None:
        return x
    return x + before.index_select(0, torch.from_numpy(parent.astype(np.int64)))


def _fed_forward(modules: nn.Module, x: Tensor, count: Tensor) -> Tensor:
    for module in modules.children():
        if isinstance(module, nn.ReLU):
            x = relu(x, inplace=True)  # of a linear layer, which does not need it again
        else:
            x = _normed(module, x, count, training=modules.training)
    return x


def _normed(norm: nn.Module | None, x: Tensor, count: Tensor, *, training: bool) -> Tensor:
    """A module that treats rows alike, or counts them as often as they occur."""
    if isinstance(norm, BatchNorm):
        nothing: Any = {"before": None, "parent": _NOWHERE, "children": None}
        return norm_and_add(
            x, count, norm, relu=False, training=training, team=norm.team, **nothing
        )
    return x if norm is None else norm(x)
