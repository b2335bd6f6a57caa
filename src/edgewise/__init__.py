"""Graph neural networks that use what stands on the edges."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Where each public name lives. Modules are imported when a name is first used, so that
# `edgewise --help` does not wait for torch.
_HOME = {
    "EdgewiseError": "errors",
    "Architecture": "recipe",
    "Recipe": "recipe",
    "make_recipe": "recipe",
    "Graph": "graph",
    "from_networkx": "interop",
    "from_pyg": "interop",
    "from_scipy": "interop",
    "to_networkx": "interop",
    "to_pyg": "interop",
    "to_scipy": "interop",
    "add_self_loops": "channels",
    "directed_channels": "channels",
    "min_max_channels": "channels",
    "one_hot_channels": "channels",
    "quantile_channels": "channels",
    "signed_channels": "channels",
    "undirected_channels": "channels",
    "SparseFeatures": "features",
    "compact_features": "features",
    "sparse_features": "features",
    "DoublyStochastic": "operators",
    "SparseOperator": "operators",
    "doubly_stochastic": "normalization",
    "gcn": "normalization",
    "row": "normalization",
    "symmetric": "normalization",
    "ChannelAttention": "layers",
    "ChannelConv": "layers",
    "GraphModel": "models",
    "NodeModel": "models",
    "VARIANTS": "models",
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
