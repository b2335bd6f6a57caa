"""Settings that do not apply: refused where somebody set them, left out where a preset did."""

from collections.abc import Collection, Sequence

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import SETTINGS, Settings


def refuse_foreign(given: Collection[str], owner: str, takes: Collection[str], why: str) -> None:
    """Refuse settings that were given but do not hold.

    Args:
        given: Names of the settings that somebody set.
        owner: One of :data:`~edgewise.core.setting.OWNERS`.
        takes: What it takes, of the settings that it decides about.
        why: What it is, for the sentence: ``cora is a graph without tables``.
    """
    foreign = [
        name for name in given if SETTINGS[name].metadata["of"] == owner and name not in takes
    ]
    if foreign:
        raise foreign_settings(foreign, why)


def foreign_settings(names: Sequence[str], why: str) -> EdgewiseError:
    """The sentence for settings that do not apply, and why."""
    several = len(names) > 1
    return EdgewiseError(
        f"the setting{'s' * several} {preview(names)} {'do' if several else 'does'} not apply "
        f"here: {why}; leave {'them' if several else 'it'} out"
    )


def without_foreign(
    settings: Settings, owner: str, takes: Collection[str], kept: Collection[str]
) -> Settings:
    """The settings with those of a preset that do not hold at their defaults.

    Args:
        settings: With what a preset says.
        owner: One of :data:`~edgewise.core.setting.OWNERS`.
        takes: What it takes, of the settings that it decides about.
        kept: Names of settings that somebody set, or that follow from the data.
    """
    foreign = {
        name: one.default
        for name, one in SETTINGS.items()
        if one.metadata["of"] == owner and name not in takes and name not in kept
    }
    return settings.changed(**foreign)
