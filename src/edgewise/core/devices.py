"""Where tensors live: the CPU with its compiled kernels, or another device in plain torch."""

import torch

from edgewise.core.errors import EdgewiseError


def find_device(name: str) -> torch.device:
    """The device of a word: ``auto`` is a GPU where there is one, else the CPU."""
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        name = next(kind for kind, there in available.items() if there)
    kind = name.partition(":")[0]
    if not available.get(kind, False):
        raise EdgewiseError(
            f"the device {name!r} is unavailable here; choose one of "
            f"{', '.join(kind for kind, there in available.items() if there)}, or auto"
        )
    return torch.device(name)
