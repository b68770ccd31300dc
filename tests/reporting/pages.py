"""A page as a reader without a screen gets it: elements, texts, and what would be loaded."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

VOID = {"meta", "br", "line", "rect", "circle", "path"}


class Page(HTMLParser):
    """Parsed strictly: every element that is opened is closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.stack, self.tags = text, [], Counter()
        self.ids, self.pictures, self.words = [], [], []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += attrs
        given = dict(attrs)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "svg":
            self.pictures.append(given)
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack and self.stack[-1] != "style":
            self.words.append(data)

    @property
    def said(self) -> str:
        return " ".join(" ".join(self.words).split())


def check_page(text: str) -> Page:
    """What holds of every report."""
    page = Page(text)
    assert len(text.encode()) < 500_000
    for tag in ("script", "link", "img", "iframe", "object", "embed", "foreignobject", "use"):
        assert page.tags[tag] == 0, tag
    assert not re.search(r"(?i)https?:|//|url\(|@import|javascript:|nan\b", text)
    names = [name for name, _ in page.attributes]
    assert not [name for name in names if name.startswith("on") or name in ("src", "style")]
    links = [value for name, value in page.attributes if name == "href"]
    assert all(link.startswith("#") and link[1:] in page.ids for link in links)
    assert len(set(page.ids)) == len(page.ids)
    assert page.tags["figure"] >= 1
    for picture in page.pictures:
        assert picture["role"] == "img"
        assert all(name in page.ids for name in picture["aria-labelledby"].split())
    assert "prefers-color-scheme:dark" in text
    return page
