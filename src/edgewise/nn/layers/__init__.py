"""Learned layers. A layer normalises its edges, then mixes nodes along them.

Both follow PyG: ``conv(x, edge_index, edge_attr)`` takes raw channels, and messages flow from
``edge_index[0]`` to ``edge_index[1]``. A model that uses the same edges again and again builds
the operator once with ``conv.operator(...)`` and calls ``conv.propagate(x, operator)``.
"""

from edgewise.nn.layers.attention import ChannelAttention
from edgewise.nn.layers.convolution import ChannelConv
from edgewise.nn.layers.gated import GatedChannelConv
from edgewise.nn.layers.layer import Layer, LayerShape

__all__ = ["ChannelAttention", "ChannelConv", "GatedChannelConv", "Layer", "LayerShape"]
