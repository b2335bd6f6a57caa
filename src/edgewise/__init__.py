"""Graph neural networks that use multi-dimensional edge features."""

import warnings
from importlib import import_module
from typing import Any

from edgewise.core.waiting import wait_briefly

__version__ = "0.2.0.dev0"

wait_briefly()  # nothing has imported torch yet, unless the user has

# Where each public name lives. Modules are imported when a name is first used, so that
# `edgewise --help` does not wait for torch.
_HOME = {
    "EdgewiseError": "core.errors",
    "load_plugins": "core.plugins",
    "make_settings": "core.presets",
    "register_featurizer": "core.registries",
    "register_layer": "core.registries",
    "register_task": "core.registries",
    "register_unit": "core.registries",
    "ModelSettings": "core.declarations",
    "Settings": "core.settings",
    "Featurizer": "data.featurizers",
    "register_dataset": "data.own_datasets",
    "Batch": "graphs.batch",
    "Graph": "graphs.graph",
    "MultiGraph": "graphs.graph",
    "GraphSet": "graphs.graph_set",
    "from_networkx": "graphs.interop",
    "from_pyg": "graphs.interop",
    "from_scipy": "graphs.interop",
    "to_networkx": "graphs.interop",
    "to_pyg": "graphs.interop",
    "to_scipy": "graphs.interop",
    "add_self_loops": "graphs.channels",
    "directed_channels": "graphs.channels",
    "min_max_channels": "graphs.channels",
    "one_hot_channels": "graphs.channels",
    "quantile_channels": "graphs.channels",
    "signed_channels": "graphs.channels",
    "undirected_channels": "graphs.channels",
    "SparseFeatures": "graphs.features",
    "compact_features": "graphs.features",
    "sparse_features": "graphs.features",
    "DoublyStochastic": "nn.operators",
    "SparseOperator": "nn.operators",
    "doubly_stochastic": "nn.normalization",
    "gcn": "nn.normalization",
    "row": "nn.normalization",
    "symmetric": "nn.normalization",
    "ChannelAttention": "nn.layers",
    "ChannelConv": "nn.layers",
    "GatedChannelConv": "nn.layers",
    "Layer": "nn.layers",
    "LayerShape": "nn.layers",
    "ChannelNetwork": "nn.network",
    "VARIANTS": "nn.network",
    "Columnar": "tasks",
    "Task": "tasks",
    "EdgeClassifier": "estimators",
    "EdgeRegressor": "estimators",
    "GraphClassifier": "estimators",
    "GraphRegressor": "estimators",
    "LinkPredictor": "estimators",
    "MoleculeClassifier": "estimators",
    "MoleculeRegressor": "estimators",
    "NodeClassifier": "estimators",
    "NodeRegressor": "estimators",
    "load_model": "training",
    "import_graph": "runs",
    "open_run": "runs",
    "train": "runs",
    "plain_kernels": "kernels.backend",
    "set_num_threads": "kernels.backend",
}
# Names of version 0.1 that still work, and what takes their place.
_OLD = {
    "Architecture": ("core.settings", "ModelSettings"),
    "Recipe": ("core.presets", "recipe_0_1"),
    "make_recipe": ("core.presets", "make_recipe_0_1"),
    "NodeModel": ("nn.models", "NodeModel"),
    "GraphModel": ("nn.models", "GraphModel"),
}
_REPLACED = {
    "Architecture": "ModelSettings",
    "Recipe": "make_settings",
    "make_recipe": "make_settings",
    "NodeModel": "ChannelNetwork",
    "GraphModel": "ChannelNetwork",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _OLD:
        module, today = _OLD[name]
        warnings.warn(
            f"edgewise.{name} goes away in version 0.3; use edgewise.{_REPLACED[name]}",
            FutureWarning,
            stacklevel=2,
        )
        return getattr(import_module(f"edgewise.{module}"), today)
    if name not in _HOME:
        raise AttributeError(f"module 'edgewise' has no attribute {name!r}")
    return getattr(import_module(f"edgewise.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
