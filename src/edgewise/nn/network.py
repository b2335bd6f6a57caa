"""Networks of blocks: the paper's variants are settings, and ``model(batch)`` is the way in."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from jaxtyping import Float
from torch import Tensor, nn

from edgewise.core.declarations import ModelSettings
from edgewise.core.errors import EdgewiseError
from edgewise.core.registries import LAYERS
from edgewise.graphs.batch import Batch
from edgewise.graphs.edges import DIRECTIONS, TRIPLED, Edges
from edgewise.graphs.edges_in_blocks import EdgesInBlocks
from edgewise.graphs.features import Features, SparseFeatures
from edgewise.kernels.activation import drop
from edgewise.kernels.colours import Refinement
from edgewise.kernels.dropout import draw_key
from edgewise.nn.blocks import NORMS, Block
from edgewise.nn.colours import colours_of, through_blocks
from edgewise.nn.eager import eager
from edgewise.nn.edge_state import EdgeState
from edgewise.nn.in_blocks import Parts, computed_in_blocks
from edgewise.nn.layers.base import check_type
from edgewise.nn.layers.layer import LayerShape
from edgewise.nn.linear import Linear
from edgewise.nn.readouts import NodeReadout, Readout

# The rows of the paper's Table 2. GCN and GAT are the framework's simplest settings.
VARIANTS = {
    "GCN": ModelSettings(normalize="symmetric", directed=False),
    "GAT": ModelSettings("attention", "row", adapt=False, directed=False, hidden=8, heads=8),
    "EGNN(C)-M": ModelSettings(directed=False),
    "EGNN(C)-D": ModelSettings(normalize="symmetric"),
    "EGNN(C)": ModelSettings(),
    "EGNN(A)-D-M": ModelSettings("attention", "row", directed=False),
    "EGNN(A)-A-M": ModelSettings("attention", adapt=False, directed=False),
    "EGNN(A)-A-D": ModelSettings("attention", "row", adapt=False),
    "EGNN(A)": ModelSettings("attention"),
}


class Network(nn.Module):
    """A model as training and prediction need it."""

    def forward(self, batch: Batch) -> Float[Tensor, "rows out"]:
        raise NotImplementedError

    def represent(self, batch: Batch) -> Float[Tensor, "rows width"]:
        """The embedding of each row of a batch: the input of the last layer."""
        raise NotImplementedError

    def computed_rows(self, batch: Batch) -> tuple[float, float]:
        """How many nodes and edges a layer computes for a batch."""
        return float(len(batch.x)), float(batch.edge_index.size(1))

    def weights(self) -> list[nn.Parameter]:
        """The parameters that L2 regularisation applies to: neither biases nor those of norms."""
        left_out = {id(parameter) for parameter in self.biases()}
        return [p for p in self.parameters() if id(p) not in left_out]

    def biases(self) -> list[nn.Parameter]:
        """The parameters that are not regularised."""
        norms = [m for m in self.modules() if isinstance(m, nn.BatchNorm1d | nn.LayerNorm)]
        of_norms = {id(p) for norm in norms for p in norm.parameters()}
        return [
            p for name, p in self.named_parameters() if name.endswith("bias") or id(p) in of_norms
        ]


class ChannelNetwork(Network):
    """Encoders, blocks, read-out, head.

    Args:
        in_channels: Number of node features.
        out_channels: Number of outputs per row.
        edge_channels: Number of raw edge channels, before direction is encoded.
        settings: Layers, normalisation, depth, width; see :data:`VARIANTS`.
        readout: From nodes to rows; without it the rows are nodes.
        direction: How direction becomes channels, one of
            :data:`~edgewise.graphs.edges.DIRECTIONS`; without it as the settings say.

    Example:
        >>> import torch
        >>> from edgewise.graphs.batch import Batch
        >>> model = ChannelNetwork(1433, 7, settings=VARIANTS["EGNN(A)"])
        >>> model(Batch.of(torch.rand(4, 1433), torch.tensor([[0, 1], [1, 2]]))).shape
        torch.Size([4, 7])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        edge_channels: int = 1,
        settings: ModelSettings | None = None,
        *,
        readout: Readout | None = None,
        direction: str = "",
    ) -> None:
        super().__init__()
        s = settings or ModelSettings()
        self.settings, self.direction = s, direction or direction_of(s)
        self.edge_channels = edge_channels
        width = edge_channels * (3 if self.direction in TRIPLED else 1)
        self.encoder = Linear(in_channels, s.hidden) if s.encoder == "linear" else None
        in_channels = s.hidden if self.encoder is not None else in_channels
        self.incident: Linear | None = None
        if s.incident:
            if self.encoder is None:
                raise EdgewiseError("incident = true adds to encoded nodes; set encoder = linear")
            self.incident = Linear(width, s.hidden, bias=False)
        layer_class = LAYERS[s.layer]
        self.edge_encoder: Linear | None = None
        if layer_class.has_edge_state:
            self.edge_encoder = Linear(width, s.gates)
            width = s.gates
        self.blocks = nn.ModuleList()
        is_head = s.head == "layer"
        build = layer_class.build
        self.readout = readout or NodeReadout()
        # An activation that nothing stands behind is the read-out's, which may have less to do.
        full = s.norm != "none" or s.residual or s.feed_forward > 0
        self.readout.activation = "" if is_head or full else s.activation
        for depth in range(s.depth):
            last = depth == s.depth - 1
            out = out_channels if last and is_head else s.hidden
            shape = LayerShape(in_channels, out, width, last=last, is_head=last and is_head)
            layer = build(shape, s)
            root_width = in_channels if s.root_weight else 0
            self.blocks.append(
                Block(layer, activation="", root_width=root_width)
                if last and (is_head or self.readout.activation)
                else Block(
                    layer,
                    norm=s.norm,
                    activation=s.activation,
                    dropout=0.0 if last else s.dropout,
                    residual=s.residual,
                    feed_forward=s.feed_forward,
                    last=last,
                    root_width=root_width,
                )
            )
            in_channels = layer.out_width
        if is_head and not isinstance(self.readout, NodeReadout):
            raise EdgewiseError(
                "head = layer gives outputs for nodes, not for graphs; set head = linear"
            )
        self.head = _head(s, self.readout.connect(in_channels), out_channels)

    @eager
    def forward(self, batch: Batch) -> Float[Tensor, "rows out"]:
        """The outputs of the rows of the batch."""
        if isinstance(batch.edges, EdgesInBlocks):
            return self._in_blocks(batch, batch.edges, len(self.blocks), self._read_out)
        return self._read_out(self._behind_last(batch), batch)

    def _read_out(self, h: Tensor, batch: Batch) -> Float[Tensor, "rows out"]:
        rows = self.readout(h, batch)
        return rows if self.head is None else self.head(rows)

    def represent(self, batch: Batch) -> Float[Tensor, "rows width"]:
        """The embedding of each row: the input of the head, or of the last layer without one.

        A network of a single layer without a head gives its output.
        """
        early = self.head is None and len(self.blocks) > 1
        if isinstance(batch.edges, EdgesInBlocks):
            blocks = len(self.blocks) - early
            return self._in_blocks(batch, batch.edges, blocks, self.readout)
        if early:
            h, _ = self._before_last(batch)
            assert isinstance(h, Tensor)
            return self.readout(h, batch)
        return self.readout(self._behind_last(batch), batch)

    def _behind_last(self, batch: Batch) -> Tensor:
        """What comes out of the last layer."""
        shared = self._shared(batch)
        if shared is not None:
            return shared
        h, edges = self._before_last(batch)
        h, _ = self._blocks()[-1](h, edges)
        return h

    def _shared(self, batch: Batch) -> Tensor | None:
        """The same for many graphs, their equal nodes computed once; None where that cannot be."""
        colours, encoder = self._colours(batch), self.edge_encoder
        if colours is None or encoder is None:
            return None
        assert isinstance(batch.x, Tensor)
        x = self._encoded(batch.x[colours.first_node])
        assert isinstance(x, Tensor)
        edges = batch.edges.encoded(self.direction).edge_attr[colours.first_edge]
        return through_blocks(self._blocks(), colours, x, encoder(edges))

    def computed_rows(self, batch: Batch) -> tuple[float, float]:
        """How many nodes and edges a layer computes, the mean over layers: equal ones count once.

        Edges are those of the batch, before direction is encoded.
        """
        nodes, edges = super().computed_rows(batch)
        colours = self._colours(batch)
        if colours is None:
            return nodes, edges
        sizes = [(len(level.node_count), len(level.edge_count)) for level in colours.levels]
        every = batch.edges.encoded(self.direction).edge_index.size(1)
        found = [sum(size) / len(sizes) for size in zip(*sizes, strict=True)]
        return found[0], edges * found[1] / every

    def _colours(self, batch: Batch) -> Refinement | None:
        """Which nodes and edges are equal through all layers; None where it does not matter."""
        drops = self.training and self.settings.dropout > 0  # each node for itself
        if batch.num_graphs < 2 or drops or self.incident is not None or self.edge_encoder is None:
            return None
        if not all(block.layer.takes_colours for block in self._blocks()):
            return None
        every = batch.edges.encoded(self.direction)
        return colours_of(batch.x, every.edge_index, every.edge_attr, len(self.blocks))

    def _in_blocks(
        self,
        batch: Batch,
        edges: EdgesInBlocks,
        blocks: int,
        read_out: Callable[[Tensor, Batch], Tensor],
    ) -> Float[Tensor, "rows out"]:
        """The rows of a graph that is read block by block, after the first blocks."""
        assert not self.training, "in blocks, a network predicts; call eval() first"
        parts = Parts(
            self._encoded,
            self.incident,
            self.edge_encoder,
            self._blocks()[:blocks],
            LAYERS[self.settings.layer].hops(self.settings),
            self.direction,
        )
        return self.readout.in_blocks(batch, partial(computed_in_blocks, parts, edges), read_out)

    def _before_last(self, batch: Batch) -> tuple[Features, Any]:
        """What goes into the last layer, and the edges along which it goes there."""
        every = batch.edges.encoded(self.direction)
        h = self._encoded(batch.x)
        if self.incident is not None:
            # Logarithms, for hubs are far.
            h = h + self.incident(every.entering_sums().log1p())
        edges = self._edge_state(every)
        for number, block in enumerate(self._blocks()[:-1]):
            h, edges = block(h, self._edges(every, number, edges))
        return h, self._edges(every, len(self.blocks) - 1, edges)

    def _encoded(self, x: Features) -> Features:
        """The input of the first layer."""
        p = self.settings.dropout if self.training else 0.0
        x = _dropped(x, p)
        first = self._blocks()[0].layer
        if self.encoder is not None:
            check_type(x, self.encoder.weight)
            if isinstance(x, SparseFeatures):
                return x @ self.encoder.weight.t() + self.encoder.bias
            return self.encoder(x)
        return x if first.takes_sparse_features or isinstance(x, Tensor) else x.to_dense()

    def _edge_state(self, every: Edges) -> EdgeState | None:
        """The edges before the first layer, where they have features of their own."""
        if self.edge_encoder is None:
            return None
        return EdgeState(None, self.edge_encoder(every.edge_attr))

    def _edges(self, every: Edges, number: int, handed_on: Any) -> Any:
        """What the layer of this number propagates along."""
        if handed_on is not None and not isinstance(handed_on, EdgeState):
            return handed_on
        prepared = every.of_layer(number, len(self.blocks)).prepared(self._blocks()[number].layer)
        return prepared if handed_on is None else handed_on.along(prepared)

    def _blocks(self) -> list[Block]:
        return cast(list[Block], list(self.blocks))


def direction_of(settings: ModelSettings) -> str:
    """How direction becomes channels; where it is left open, the two directions are summed."""
    if settings.directed:
        return "directed"
    return settings.reciprocal if settings.reciprocal in DIRECTIONS else "sum"


def _head(settings: ModelSettings, width: int, out_channels: int) -> nn.Module | None:
    if settings.head == "layer":
        return None
    if settings.head == "linear":
        return Linear(width, out_channels)
    norm = NORMS[settings.norm](width)
    return nn.Sequential(
        *([] if norm is None else [norm]),
        Linear(width, width),
        nn.ReLU(),
        nn.Dropout(settings.dropout),
        Linear(width, out_channels),
    )


def _dropped(x: Features, p: float) -> Features:
    if p == 0:
        return x
    key = draw_key()
    return x.dropped(p, key) if isinstance(x, SparseFeatures) else drop(x, p, key)
