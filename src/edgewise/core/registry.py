"""Things that are found by name: units, tasks, layers, featurisers."""

from collections.abc import Callable, Collection, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

from edgewise.core.errors import EdgewiseError, NotRegistered

Thing = TypeVar("Thing")


class Registry(Generic[Thing]):
    """Names to things. Those of the package are imported when they are first asked for.

    Args:
        what: The word for one of them, in messages.
        built_in: For each name where it lives, as ``"module:attribute"``.
        known_as: Attribute by which a thing knows its own name; it is set when it is registered.

    Example:
        >>> layers = Registry("layer", {})
        >>> layers.register("mine", object)
        >>> layers["mine"]
        <class 'object'>
    """

    def __init__(self, what: str, built_in: Mapping[str, str], known_as: str = "") -> None:
        self.what, self.known_as = what, known_as
        self._homes = dict(built_in)
        self._things: dict[str, Thing] = {}

    def register(self, name: str, thing: Thing) -> None:
        """Make a thing known by a name; a name that is taken is refused."""
        if name in self._homes or self._things.get(name, thing) is not thing:
            raise EdgewiseError(
                f"there is a {self.what} named {name!r} already; choose another name"
            )
        if self.known_as:
            setattr(thing, self.known_as, name)
        self._things[name] = thing

    def registered(self, name: str) -> Callable[[Thing], Thing]:
        """A decorator that registers a class."""

        def register(thing: Thing) -> Thing:
            self.register(name, thing)
            return thing

        return register

    @property
    def names(self) -> tuple[str, ...]:
        return (*self._homes, *(name for name in self._things if name not in self._homes))

    def __contains__(self, name: object) -> bool:
        return name in self._homes or name in self._things

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __getitem__(self, name: str) -> Thing:
        if name not in self._things:
            if name not in self._homes:
                raise NotRegistered(
                    f"there is no {self.what} {name!r}; choose one of {', '.join(self.names)}, or "
                    "name the Python file that registers it with --plugin"
                )
            module, _, attribute = self._homes[name].partition(":")
            self._things[name] = getattr(import_module(module), attribute)
        return self._things[name]


class Choices(Collection[str]):
    """The names of a registry as it is when they are asked for, behind some words of their own.

    Args:
        registry: Where the names are.
        words: That are no names.
        ending: Behind each name, such as that of a plural.
    """

    def __init__(self, registry: Registry[Any], *words: str, ending: str = "") -> None:
        self._registry, self._words, self._ending = registry, words, ending

    def __contains__(self, name: object) -> bool:
        return name in tuple(self)

    def __iter__(self) -> Iterator[str]:
        return iter((*self._words, *(f"{name}{self._ending}" for name in self._registry)))

    def named(self, word: str) -> str:
        """The name that a word stands for."""
        return word.removesuffix(self._ending)

    def __len__(self) -> int:
        return len(self._words) + len(self._registry.names)
