"""Convolution along edge channels, EGNN(C)."""

from jaxtyping import Float
from torch import Tensor

from edgewise.core.declarations import ModelSettings
from edgewise.core.errors import EdgewiseError
from edgewise.graphs.features import Features
from edgewise.nn.eager import eager
from edgewise.nn.layers.base import ChannelLayer, mapped
from edgewise.nn.layers.layer import LayerShape
from edgewise.nn.operators import Operator, SampledFactors
from edgewise.nn.sampled import HOPS


class ChannelConv(ChannelLayer):
    r"""Convolution along every edge channel: EGNN(C) of `Gong and Cheng (2019)
    <https://arxiv.org/abs/1809.02709>`_.

    .. math::
        X' = \Big\Vert_{p=1}^{P} E_{\cdot\cdot p} \, X W + b

    :math:`E_{\cdot\cdot p}` is the normalised matrix of channel :math:`p` and :math:`\Vert`
    concatenates, so the output is :math:`P` times as wide as ``out_channels``. Every channel
    gets a self-loop of weight 1 where it has none. No activation: put it in the model.

    Args:
        in_channels: Width :math:`F` of a node on the way in.
        out_channels: Width :math:`F'` of a node per edge channel on the way out.
        edge_channels: Number :math:`P` of edge channels.
        normalize: ``"doubly_stochastic"``, ``"symmetric"``, ``"row"`` or ``"gcn"``.
        concat: Concatenate the channels; if False they are averaged.
        bias: Whether to learn :math:`b`.
        flow: ``"source_to_target"`` as in PyG, or ``"target_to_source"``.

    Shapes:
        ``x`` ``[nodes, F]``, ``edge_index`` ``[2, edges]``, ``edge_attr`` ``[edges, P]`` (or
        ``[edges]``, or left out for ones) to ``[nodes, P * F']``.

    Example:
        >>> conv = ChannelConv(1433, 64, edge_channels=3)
        >>> conv(torch.randn(5, 1433), torch.tensor([[0, 1], [1, 2]]), torch.rand(2, 3)).shape
        torch.Size([5, 192])
    """

    settings = frozenset({"normalize", "root_weight"})

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        edge_channels: int = 1,
        normalize: str = "doubly_stochastic",
        concat: bool = True,
        *,
        bias: bool = True,
        flow: str = "source_to_target",
    ) -> None:
        super().__init__(in_channels, out_channels, edge_channels, normalize, concat, 1, bias, flow)
        self.reset_parameters()

    @classmethod
    def build(cls, shape: LayerShape, settings: ModelSettings) -> "ChannelConv":
        if settings.heads > 1:
            raise EdgewiseError(
                f"heads = {settings.heads}, but a convolution has none; set layer = attention or "
                "heads = 1"
            )
        widths = shape.in_channels, shape.out_channels, shape.edge_channels
        return cls(*widths, settings.normalize, concat=not shape.is_head)

    @eager
    def forward(
        self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None
    ) -> Float[Tensor, "nodes out"]:
        return self.propagate(x, self.operator(edge_index, edge_attr, len(x)))

    def advance(
        self, x: Features, edges: Operator | SampledFactors
    ) -> tuple[Float[Tensor, "rows out"], None]:
        return self.unbiased(x, edges), None

    def propagate(self, x: Features, edges: Operator) -> Float[Tensor, "nodes out"]:
        """The layer along edges that are an operator already."""
        return self.add_bias(self.unbiased(x, edges))

    def unbiased(self, x: Features, edges: Operator | SampledFactors) -> Float[Tensor, "rows out"]:
        """As :meth:`propagate`, without the bias."""
        self.check(x, edges, self.edge_channels)
        return self._along(self.project(x), edges)

    def _along(self, h: Tensor, edges: Operator | SampledFactors) -> Float[Tensor, "rows out"]:
        return self.joined(edges @ h) if self.concat else edges.mean(h)

    @classmethod
    def hops(cls, settings: ModelSettings) -> int:
        return len(HOPS[settings.normalize])

    def project(self, x: Features) -> Float[Tensor, "nodes width"]:
        return mapped(x, self.weight)

    def gather(self, projected: Tensor, edges: Operator, hop: int) -> Float[Tensor, "rows out"]:
        inner = hop == len(HOPS[self.normalize]) - 1
        h = projected if inner else projected.unflatten(1, (self.edge_channels, -1))
        return (edges @ h).flatten(1) if hop else self._along(h, edges)
