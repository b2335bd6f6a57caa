"""What a network asks of a layer. One of your own is a class of this kind, and a registration."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from edgewise.core.declarations import ModelSettings
from edgewise.core.errors import EdgewiseError
from edgewise.graphs.edges import Edges
from edgewise.graphs.features import Features
from edgewise.graphs.sampled_edges import SampledLayer


@dataclass(frozen=True)
class LayerShape:
    """Where a layer stands in a network."""

    in_channels: int
    out_channels: int
    edge_channels: int
    last: bool = False  # nothing follows but the read-out
    is_head: bool = False  # its outputs are the network's: as wide as out_channels, exactly


class Layer(nn.Module):
    """A layer of a network, with PyG's signature: ``layer(x, edge_index, edge_attr)``.

    A layer of your own has a constructor and computes; see docs/extending.md:

        >>> class SumLayer(Layer):
        ...     def __init__(self, in_channels, out_channels, edge_channels):
        ...         super().__init__()
        ...         self.linear = nn.Linear(in_channels, out_channels)
        ...     def forward(self, x, edge_index, edge_attr):
        ...         out = x.new_zeros(x.shape).index_add(0, edge_index[1], x[edge_index[0]])
        ...         return self.linear(x + out)

    ``edge_attr`` holds non-negative channels, with direction encoded as the settings say. A layer
    that takes settings of the model names them in ``settings``, and builds itself in
    :meth:`build`; one whose nodes are not ``out_channels`` wide on the way out says so in
    ``out_width``. The other methods are for layers that prepare their edges once, pass them on
    changed, or compute with sampled neighbours and in blocks of rows: :meth:`hops` and what follows
    it.
    """

    settings: ClassVar[frozenset[str]] = frozenset()  # of the model, that are this layer's to take
    takes_sparse_features: ClassVar[bool] = False
    has_edge_state: ClassVar[bool] = False  # edges have features that each layer updates
    out_width: int  # of a node on the way out
    edge_width: int  # of an edge on the way out, if edges have a state

    @classmethod
    def build(cls, shape: LayerShape, settings: ModelSettings) -> "Layer":
        """The layer for its place in a network: ``cls(in_channels, out_channels, edge_channels)``
        unless a layer does otherwise.
        """
        make: Any = cls
        layer: Layer = make(shape.in_channels, shape.out_channels, shape.edge_channels)
        layer.out_width = getattr(layer, "out_width", shape.out_channels)
        return layer

    @property
    def deferred_bias(self) -> Tensor | None:
        """A bias that :meth:`advance` left out, for the block to add in the same pass as others."""
        return None

    @property
    def takes_colours(self) -> bool:
        """Whether :meth:`advance` takes colours of nodes, and edges that were prepared as a
        :class:`~edgewise.kernels.colours.Level`: what it gives for a node is made of the node
        itself and a sum over the edges that enter it.
        """
        return False

    @property
    def gated_weights(self) -> tuple[int, Tensor, Tensor, Tensor] | None:
        """Channels, weight, bias and edge weight of a layer that is computed together with what
        follows it by :mod:`edgewise.kernels.coloured_block`; None for every other layer.
        """
        return None

    @property
    def edge_key(self) -> Hashable:
        """Layers with equal keys prepare edges alike, so it is done once for all of them."""
        return "raw"

    def prepare(self, edges: Edges) -> Any:
        """What :meth:`advance` propagates along: by default the raw edges."""
        return edges

    def prepare_many(self, edges: Edges) -> Any:
        """An operator over many graphs from which those of a batch are cut; None: not possible."""
        return None

    def cut(self, prepared: Any, node_offset: Tensor, chosen: Tensor) -> Any:
        """What belongs to the chosen graphs, of what :meth:`prepare_many` gave."""
        raise NotImplementedError

    def advance(self, x: Features, edges: Any) -> tuple[Float[Tensor, "nodes out"], Any]:
        """New node features, without :attr:`deferred_bias`, and edges for the next layer.

        None in place of edges: the next layer prepares its own.
        """
        return self(x, edges.edge_index, edges.edge_attr), None

    @classmethod
    def hops(cls, settings: ModelSettings) -> int:
        """How many steps to neighbours the layer takes, where these can be sampled.

        Raises:
            EdgewiseError: If they cannot.
        """
        raise EdgewiseError(
            f"the layer {settings.layer} cannot sample neighbours; leave out neighbors, or set "
            "layer = conv"
        )

    def prepare_sampled(self, edges: SampledLayer) -> Any:
        """What :meth:`advance` and :meth:`gather` propagate along, of sampled neighbours."""
        raise NotImplementedError

    def project(self, x: Features) -> Float[Tensor, "nodes projected"]:
        """What is to be known of nodes whose neighbours gather it."""
        raise NotImplementedError

    def gather(self, projected: Tensor, edges: Any, hop: int) -> Float[Tensor, "rows out"]:
        """One hop for some nodes; after hop 0, what :meth:`advance` gives for them.

        Args:
            projected: Of these nodes and all their neighbours, or the result of the hop before.
            edges: What :meth:`prepare_sampled` gave for this hop alone.
            hop: Which one; the last comes first.
        """
        raise NotImplementedError

    @property
    def hands_edges_on(self) -> bool:
        """Whether :meth:`advance` gives edges for the next layer."""
        return False

    def hand_on(self, projected: Tensor, edges: Any) -> Any:
        """The edges that :meth:`advance` hands on, for nodes with all their neighbours."""
        return None
