"""Code that would leave an accelerator fails here on the CPU, where it would pass unnoticed."""

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

LEAVES = {
    Tensor.numpy,
    Tensor.cpu,
    Tensor.tolist,
    Tensor.item,
    Tensor.__int__,
    Tensor.__index__,
    Tensor.__float__,
    Tensor.__bool__,
    Tensor.__array__,
    torch.from_numpy,
}
FACTORIES = {
    torch.arange, torch.as_tensor, torch.empty, torch.eye, torch.full, torch.linspace, torch.ones,
    torch.rand, torch.randint, torch.randn, torch.randperm, torch.tensor, torch.zeros,
}  # fmt: skip


class LeftDeviceError(AssertionError):
    """A tensor went to the CPU, or was made there by default."""


class OneDevice(TorchFunctionMode):
    """Within this block no tensor may leave its device, and none is made without naming one.

    A tensor made with the literal ``device="cpu"`` is on the CPU on purpose, and may be read.
    """

    def __init__(self) -> None:
        super().__init__()
        self._on_purpose: list[Tensor] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", str(func))
        if func in LEAVES and not any(args[0] is tensor for tensor in self._on_purpose):
            raise LeftDeviceError(f"{name} takes a tensor from its device")
        if func is Tensor.to and "cpu" in (*args[1:], kwargs.get("device")):
            raise LeftDeviceError("to('cpu') takes a tensor from its device")
        if func in FACTORIES and kwargs.get("device") is None:
            raise LeftDeviceError(f"{name} makes a tensor on the CPU; name the device")
        out = func(*args, **kwargs)
        if func in FACTORIES and kwargs["device"] == "cpu" and isinstance(kwargs["device"], str):
            self._on_purpose.append(out)
        return out
