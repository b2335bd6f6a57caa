"""The network of units whose rows are pairs of nodes: edges, and links to come."""

from edgewise.core.declarations import ModelSettings
from edgewise.core.registries import LAYERS
from edgewise.nn.network import ChannelNetwork
from edgewise.nn.readouts import EdgeReadout

# Whether the layer keeps parallel edges apart, and whether edges have a direction.
_DIRECTIONS = {
    (True, True): "parallel",
    (True, False): "parallel_both_ways",
    (False, True): "merged",
    (False, False): "merged_sum",
}


def pair_network(
    features: int, outputs: int, channels: int, pair_features: int, model: ModelSettings
) -> ChannelNetwork:
    """A network that reads pairs of nodes.

    Args:
        features: Of a node.
        outputs: Of a pair.
        channels: Of an edge that carries messages.
        pair_features: What is known of a pair itself.
        model: Its settings.
    """
    return ChannelNetwork(
        features,
        outputs,
        channels,
        model,
        readout=EdgeReadout(pair_features, model.hidden, directed=model.directed),
        direction=_DIRECTIONS[LAYERS[model.layer].has_edge_state, model.directed],
    )
