"""Where each unit, task, layer and featuriser lives, by name. One's own are registered beside them.

Only names and places stand here, so that the command line can list them without waiting for torch.
"""

from typing import Any

from edgewise.core.registry import Registry

UNITS: Registry[Any] = Registry(
    "unit",
    {
        "node": "edgewise.units.node:NODE",
        "edge": "edgewise.units.edge:EDGE",
        "link": "edgewise.units.link:LINK",
        "graph": "edgewise.units.graph:GRAPH",
    },
)
# In the order in which they are asked whether a column is theirs.
TASKS: Registry[Any] = Registry(
    "task",
    {
        "multilabel": "edgewise.tasks.multilabel:Multilabel",
        "classification": "edgewise.tasks.classification:Classification",
        "regression": "edgewise.tasks.regression:Regression",
        "link": "edgewise.tasks.link:Link",
    },
    known_as="name",
)
LAYERS: Registry[Any] = Registry(
    "layer",
    {
        "conv": "edgewise.nn.layers.convolution:ChannelConv",
        "attention": "edgewise.nn.layers.attention:ChannelAttention",
        "gated": "edgewise.nn.layers.gated:GatedChannelConv",
    },
)
FEATURIZERS: Registry[Any] = Registry(
    "featuriser",
    {
        "paper": "edgewise.data.featurizers:PaperFeaturizer",
        "rich": "edgewise.data.featurizers:RichFeaturizer",
        "properties": "edgewise.data.featurizers:PropertiesFeaturizer",
    },
    known_as="kind",
)

register_unit = UNITS.registered
register_task = TASKS.registered
register_layer = LAYERS.registered
register_featurizer = FEATURIZERS.registered
