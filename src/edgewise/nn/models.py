"""The networks of version 0.1 under their old names; :class:`ChannelNetwork` takes their place."""

from typing import Any

from jaxtyping import Float
from torch import Tensor

from edgewise.core.declarations import ModelSettings
from edgewise.graphs.batch import Batch
from edgewise.graphs.features import Features
from edgewise.nn.network import ChannelNetwork
from edgewise.nn.readouts import GraphReadout


class _Old(ChannelNetwork):
    """Takes tensors in place of a batch."""

    def forward(self, x: Features, *edges: Any, **more: Any) -> Float[Tensor, "rows out"]:  # type: ignore[override]
        return super().forward(Batch.of(x, *edges, **more))


class NodeModel(_Old):
    """Version 0.1's network for nodes: ``model(x, edge_index, edge_attr)``."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        edge_channels: int = 1,
        architecture: ModelSettings | None = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, edge_channels, architecture, direction="as_given"
        )


class GraphModel(_Old):
    """Version 0.1's network for graphs: ``model(x, edge_index, edge_attr, batch)``."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        edge_channels: int = 1,
        architecture: ModelSettings | None = None,
        *,
        pooling: str = "max",
    ) -> None:
        settings = architecture or ModelSettings(hidden=16, dropout=0.0)
        super().__init__(
            in_channels,
            out_channels,
            edge_channels,
            ModelSettings(**{**vars(settings), "head": "linear"}),
            readout=GraphReadout(pooling),
            direction="as_given",
        )
