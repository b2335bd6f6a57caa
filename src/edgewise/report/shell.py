"""The shell of every page: it fetches nothing, links to its sections, and says who made it."""

from importlib.resources import files

from edgewise.report.markup import Markup, as_markup, element, joined

Sections = list[tuple[str, str, Markup]]  # anchor, title and body of each


def whole_page(
    title: str, heading: Markup, sections: Sections, footer: str, banner: str = ""
) -> str:
    """A page as the text of its file.

    Args:
        title: Its name in the browser.
        heading: What stands above the links to the sections.
        sections: What it says.
        footer: The last line.
        banner: Something to be known before all sections.
    """
    links = (element("a", name, href=f"#{anchor}") for anchor, name, _ in sections)
    bodies = (
        element("section", element("h2", name), body, id=anchor) for anchor, name, body in sections
    )
    style = files("edgewise.report").joinpath("page.css").read_text(encoding="utf-8")
    head = (
        '<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        # Whatever the file holds, a browser will fetch nothing for it.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{as_markup(title)}</title>\n"
        f"<style>\n{style}</style>"
    )
    header = element("header", heading, element("nav", *links, aria_label="Sections"))
    main = element("main", banner, joined(bodies, "\n"))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n'
        f"<body>\n{header}\n{main}\n{element('footer', footer)}\n</body>\n</html>\n"
    )
