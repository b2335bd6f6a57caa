"""Pages from templates. Everything is escaped, except for drawings that were cleaned."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from edgewise.report.blocks import Heading, Section
from edgewise.report.wording import joints, plain

_OWN = "edgewise.report"


def render_page(
    title: str,
    heading: Heading,
    sections: Sequence[Section],
    footer: str,
    *,
    template: str = "base.html.jinja",
    packages: Sequence[str] = (),
    **more: Any,
) -> str:
    """A page as the text of its file; it fetches nothing and runs nothing.

    Args:
        title: Its name in the browser.
        heading: What stands above the links to the sections.
        sections: What it says.
        footer: The last line.
        template: Of the whole page.
        packages: Where templates are looked for before those of the report, each in a folder
            ``templates``.
        more: What the template is given besides.
    """
    found = environment(tuple(dict.fromkeys((*packages, _OWN)))).get_template(template)
    return found.render(title=title, heading=heading, sections=sections, footer=footer, **more)


@cache
def environment(packages: tuple[str, ...]) -> Environment:
    """The templates of these packages, the first that has one wins."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_without_control_characters,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["joints"] = joints
    return made


def _without_control_characters(value: Any) -> Any:
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value
