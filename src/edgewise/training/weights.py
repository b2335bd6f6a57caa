"""Weights in safetensors files: looked at before anything is allocated, and never a pickle."""

import copy
import re
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.nn.network import Network

_TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16,
          "BF16": torch.bfloat16, "I64": torch.int64}  # fmt: skip


def today(name: str) -> str:
    """The name of a tensor that version 0.1 called otherwise."""
    return re.sub(r"^layers\.(\d+)\.", r"blocks.\1.layer.", name)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file; anything else, a renamed pickle too, is refused."""
    try:
        return load(path.read_bytes())
    except (OSError, SafetensorError, ValueError, KeyError, MemoryError) as error:
        raise _damaged(path, error) from error


def load_members(path: Path, like: Network, count: int) -> tuple[Network, ...]:
    """The networks whose weights a file holds.

    Args:
        path: The file.
        like: A network of their kind without weights, on the device ``meta``.
        count: How many there should be.
    """
    expected = dict(like.state_dict())
    found = _header(path)
    numbers = {name.partition(".")[0] for name in found}
    if numbers != {str(number) for number in range(len(numbers))} or len(numbers) != count:
        raise EdgewiseError(
            f"{path} holds the weights of {len(numbers)} network(s), but model.json speaks of "
            f"{count}; copy the folder again, or train again"
        )
    for number in sorted(numbers, key=int):
        mine = {today(name.partition(".")[2]): form for name, form in found.items()
                if name.partition(".")[0] == number}  # fmt: skip
        odd = sorted(mine.keys() ^ expected.keys())
        if odd:
            raise EdgewiseError(
                f"{path} does not fit model.json: tensor(s) {preview(odd)} are missing, or have no "
                "place; train again"
            )
        for name, (shape, dtype) in mine.items():
            needed = expected[name]
            if shape != list(needed.shape) or dtype != needed.dtype:
                raise EdgewiseError(
                    f"{path}: {name} is {dtype}{shape}, but model.json asks for "
                    f"{needed.dtype}{list(needed.shape)}; train again"
                )
    tensors: dict[str, dict[str, Tensor]] = {number: {} for number in numbers}
    for name, tensor in read_tensors(path).items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise EdgewiseError(f"{path}: {name} holds numbers that are not finite; train again")
        number, _, rest = name.partition(".")
        tensors[number][today(rest)] = tensor
    members = []
    for number in sorted(numbers, key=int):
        member = copy.deepcopy(like)
        member.load_state_dict(tensors[number], assign=True)
        members.append(member)
    return tuple(members)


def _header(path: Path) -> dict[str, tuple[list[int], torch.dtype | None]]:
    """Shape and type of each tensor, without reading its numbers."""
    try:
        with safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {
                name: (list(one.get_shape()), _TYPES.get(one.get_dtype()))
                for name, one in slices.items()
            }
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> EdgewiseError:
    return EdgewiseError(
        f"{path} is not a whole safetensors file ({reason_of(error)}); it was cut short, changed "
        "or is something else, so it is not used: copy it again, or train again"
    )


def reason_of(error: Exception) -> str:
    """The first line of an error, as a part of a sentence."""
    text: Any = f"no {error}" if isinstance(error, KeyError) else error
    return str(text).splitlines()[0].rstrip(".") if str(text) else type(error).__name__
