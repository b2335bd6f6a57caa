"""Graph neural networks that use what stands on the edges."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Where each public name lives. Modules are imported when a name is first used, so that
# `edgewise --help` does not wait for torch.
_HOME = {
    "EdgewiseError": "core.errors",
    "Architecture": "core.recipe",
    "Recipe": "core.recipe",
    "make_recipe": "core.recipe",
    "Graph": "graphs.graph",
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
    "GraphModel": "nn.networks",
    "NodeModel": "nn.networks",
    "VARIANTS": "nn.networks",
    "MoleculeClassifier": "estimators",
    "MoleculeRegressor": "estimators",
    "NodeClassifier": "estimators",
    "NodeRegressor": "estimators",
    "load_model": "fitted",
    "open_run": "runs",
    "train": "jobs",
    "plain_kernels": "kernels.backend",
    "set_num_threads": "kernels.backend",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'edgewise' has no attribute {name!r}")
    return getattr(import_module(f"edgewise.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
