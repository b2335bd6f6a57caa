"""The user's own Python files that register layers, tasks, featurisers and data sets."""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from edgewise.core.errors import EdgewiseError

_loaded: dict[str, None] = {}


def loaded_plugins() -> tuple[str, ...]:
    """What was loaded here, for other processes to load, too."""
    return tuple(_loaded)


def load_plugins(places: Sequence[str]) -> None:
    """Import Python files (``mine.py``) or installed modules (``mine.layers``) by name.

    Only what the user names is run: a run folder says which plugins it needs, but never makes
    one load.
    """
    for place in places:
        try:
            if place.endswith(".py"):
                _load_file(Path(place))
                place = str(Path(place).resolve())
            else:
                importlib.import_module(place)
            _loaded[place] = None
        except EdgewiseError as error:
            raise EdgewiseError(f"the plugin {place} failed: {error}") from error
        except Exception as error:  # whatever a file of the user's raises
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise EdgewiseError(
                f"the plugin {place} cannot be imported ({reason}); correct it, or check its name"
            ) from error


def _load_file(path: Path) -> None:
    if not path.is_file():
        raise EdgewiseError("there is no such file; check its name")
    name = f"edgewise_plugin_{path.stem}"
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(path.resolve()):
        return
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
