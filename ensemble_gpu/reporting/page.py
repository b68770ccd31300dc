"""Pieces of HTML: tables, figures, sections, and the page that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ensemble_gpu.reporting.style import CSS
from ensemble_gpu.reporting.text import escaped

# Nothing is loaded and nothing runs, whatever the page holds.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
MOST_SHOWN = 80


@dataclass(frozen=True)
class Section:
    """A part of the report: `body` is HTML, the other two are text."""

    key: str
    title: str
    about: str
    body: str

    def html(self) -> str:
        about = f"<p>{escaped(self.about)}</p>" if self.about else ""
        return (
            f'<section id="{self.key}"><h2>{escaped(self.title)}</h2>{about}{self.body}</section>'
        )


def table(header: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[int] = ()) -> str:
    """Texts in columns; `numeric` ones are set right. The first names the row."""
    style = ['class="n"' if k in numeric else "" for k in range(len(header))]
    tag = [f"{s} " for s in style]
    head = "".join(
        f'<th {t}scope="col">{escaped(h)}</th>' for t, h in zip(tag, header, strict=True)
    )
    body = []
    for row in rows:
        first, *rest = (escaped(cell, MOST_SHOWN) for cell in row)
        cells = "".join(
            f"<td{' ' if s else ''}{s}>{cell}</td>" for s, cell in zip(style[1:], rest, strict=True)
        )
        body.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Names and what they are, two columns without a heading."""
    body = "".join(
        f'<tr><th scope="row">{escaped(name)}</th><td>{escaped(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table><tbody>{body}</tbody></table>"


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Names and what they are, side by side."""
    body = "".join(
        f"<div><dt>{escaped(name)}</dt><dd>{escaped(value, MOST_SHOWN)}</dd></div>"
        for name, value in rows
    )
    return f'<dl class="facts">{body}</dl>'


def details(summary: str, body: str) -> str:
    return f"<details><summary>{escaped(summary)}</summary>{body}</details>"


def legend(entries: Sequence[tuple[str, str]]) -> str:
    """(style, name) of what is drawn."""
    items = "".join(
        f'<li><span class="key {style}"></span>{escaped(name, MOST_SHOWN)}</li>'
        for style, name in entries
    )
    return f'<ul class="legend">{items}</ul>'


def figure(
    title: str, picture: str, caption: str = "", entries: Sequence[tuple[str, str]] = (),
    numbers: str = "",
) -> str:  # fmt: skip
    """A picture with its legend, a sentence about it, and its numbers as a table."""
    key = legend(entries) if entries else ""
    words = f"<div>{escaped(caption)}</div>" if caption else ""
    below = f"<figcaption>{key}{words}</figcaption>" if key or words else ""
    more = details("Numbers", numbers) if numbers else ""
    return f'<figure class="card"><h3>{escaped(title)}</h3>{picture}{below}{more}</figure>'


def card(title: str, body: str) -> str:
    return f'<div class="card"><h3>{escaped(title)}</h3>{body}</div>'


def grid(parts: Iterable[str]) -> str:
    return f'<div class="grid">{"".join(parts)}</div>'


def tiles(scores: Iterable[tuple[str, str, str]]) -> str:
    """(name, value, note) of each score."""
    parts = "".join(
        f'<div class="card tile"><span>{escaped(name)}</span><b>{escaped(value)}</b>'
        f"<span>{escaped(note)}</span></div>"
        for name, value, note in scores
    )
    return f'<div class="tiles">{parts}</div>'


def page(title: str, subtitle: str, sections: Sequence[Section], closing: str) -> str:
    """The whole document."""
    links = "".join(f'<li><a href="#{s.key}">{escaped(s.title)}</a></li>' for s in sections)
    body = "\n".join(section.html() for section in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escaped(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)}</title>\n<style>{CSS}</style></head>\n<body>"
        f"<header><h1>{escaped(title)}</h1><p>{escaped(subtitle)}</p></header>\n"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main>{body}</main>\n'
        f"<footer>{escaped(closing)}</footer></body></html>\n"
    )
