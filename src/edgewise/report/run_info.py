"""What a report says about a run beside its results."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from edgewise.core.settings import Settings
from edgewise.data.sources import Source
from edgewise.units.base import Unit


@runtime_checkable
class RunInfo(Protocol):
    """A run, as far as its report needs it."""

    @property
    def folder(self) -> Path: ...

    @property
    def source(self) -> Source: ...

    @property
    def unit(self) -> Unit: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def preset(self) -> str: ...

    @property
    def checksum(self) -> str:
        """Of the data."""
        ...

    @property
    def versions(self) -> Mapping[str, str]: ...

    @property
    def command(self) -> str: ...

    @property
    def notices(self) -> tuple[str, ...]: ...

    @property
    def metrics(self) -> dict[str, Any]: ...
