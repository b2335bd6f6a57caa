"""What every page that we write must be: whole, closed, and in the colours of its reader."""

import re
from collections import Counter
from html.parser import HTMLParser

VOID = {"meta", "wbr"}


class Page(HTMLParser):
    """A page as tags, attributes and words; complains where tags do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.text, self.ids = [], Counter(), [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).replace("\u00a0", " ").split())


def check_closed(text):
    """Nothing outside the file is fetched or run."""
    parsed = Page(text)
    links = [v for _, name, v in parsed.attributes if name in ("href", "src", "action", "data")]
    assert links
    assert all(link.startswith("#") for link in links)
    assert {link[1:] for link in links} <= set(parsed.ids)
    styles = [v for _, name, v in parsed.attributes if name in ("style", "clip-path", "fill")]
    styles.append(re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1])
    assert all(re.findall(r"url\((?!#)|@import|http|//", style) == [] for style in styles)
    assert not set(parsed.tags) & {"script", "link", "img", "iframe", "object", "base"}
    assert not [name for _, name, _ in parsed.attributes if name.startswith("on")]
    assert "default-src 'none'" in text


def check_whole(text):
    """Well-formed, with words for every figure; gives the parsed page."""
    parsed = Page(text)  # checks that tags match
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert parsed.tags["title"] == parsed.tags["h1"] == parsed.tags["main"] == 1
    assert len(parsed.ids) == len(set(parsed.ids))
    drawn = [v for tag, name, v in parsed.attributes if (tag, name) == ("svg", "aria-label")]
    assert len(drawn) == parsed.tags["svg"]
    assert all(drawn)
    return parsed


def check_colours(text):
    """Every colour is a variable that has a light and a dark value."""
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    body = text.replace(style, "")
    used = set(re.findall(r"var\((--[\w-]+)\)", body))
    assert used
    assert all(f"{name}:" in light and f"{name}:" in dark.split("}")[0] for name in used)
    assert re.findall(r"#[0-9a-fA-F]{6}\b", re.sub(r"<[^>]*aria-label[^>]*>", "", body)) == []
