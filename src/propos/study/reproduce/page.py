"""All items in one page that opens by double-click, offline, in the look of a run's report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from propos.study.figures import Chart, Map, Pictures, TextTable, draw
from propos.study.reproduce.elements import POINTS, QUOTED, Assembled, Entry, Table
from propos.study.reproduce.output import WITHIN, format_ours, format_paper, summary

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
STYLE = """
:root{color-scheme:light dark;--paper:#faf9f6;--raised:#fff;--ink:#1d1c1a;--quiet:#5f5c56;--line:#e3e0d9;
--accent:#0b6b69;--tint:#e4f0ef;--warn:#8a4b00;--radius:10px;
--sans:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif;
--serif:ui-serif,"Iowan Old Style","Palatino Linotype",Palatino,Georgia,"Noto Serif","Liberation Serif",serif}
@media (prefers-color-scheme:dark){:root{--paper:#15171a;--raised:#1d2024;--ink:#eceae5;--quiet:#a9a69f;
--line:#2e3237;--accent:#6cc7c1;--tint:#1c3534;--warn:#f0b35e}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1100px;padding:2rem 1.2rem 4rem;background:var(--paper);color:var(--ink);
font:16px/1.5 var(--sans);font-variant-numeric:tabular-nums}
h1{margin:0 0 .6rem;font:500 2.1rem/1.15 var(--serif);letter-spacing:-.01em}
h2{margin:0 0 .2rem;font-size:1.15rem}
p{margin:0 0 .8rem;max-width:75ch}
a{color:var(--accent);text-underline-offset:.15em}
section{margin-top:2.4rem}
.quiet{color:var(--quiet);font-size:.92rem}
nav{display:flex;flex-wrap:wrap;gap:.3rem 1rem}
.scroll{max-width:100%;overflow-x:auto;border:1px solid var(--line);border-radius:var(--radius);
background:var(--raised)}
table{border-collapse:collapse;font-size:.92rem;width:100%}
th,td{padding:.35rem .7rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top;white-space:nowrap}
tr:last-child td{border-bottom:0}
th{font-weight:600;color:var(--quiet)}
thead th[colspan]{border-left:1px solid var(--line)}
td small,.why{color:var(--quiet);font-size:.85em}
td small{display:block}
.near{color:var(--accent)}.far{color:var(--warn)}
figure{margin:.8rem 0;padding:.6rem;border:1px solid var(--line);border-radius:var(--radius);background:#fff}
figure svg{display:block;max-width:100%;height:auto;margin:auto}
details{margin-top:.6rem}summary{cursor:pointer;color:var(--quiet)}
ul{margin:.4rem 0;padding-left:1.2rem}
"""
LEGEND = (
    '<p class="quiet">Ours above, the paper’s below. ✓: our mean differs by at most the paper’s standard deviation, '
    f"or by at most {POINTS:g} points where it prints none. ✗: it differs by more.</p>"
)


def page(items: Sequence[Assembled], budget: str, about: Iterable[str]) -> str:
    """Return the page."""
    links = "".join(f'<a href="#{escape(item.id)}">{escape(item.id)}</a>' for item in items)
    paragraphs = "".join(f"<p>{escape(line)}</p>" for line in about)
    sections = "".join(_section(item) for item in items)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>ProPos, reproduced: {escape(budget)}</title><style>{STYLE}</style></head><body>"
        f"<h1>ProPos, reproduced</h1>{paragraphs}<nav>{links}</nav>{sections}</body></html>\n"
    )


def _section(item: Assembled) -> str:
    lines = "".join(f'<p class="quiet">{escape(line)}</p>' for line in summary(item))
    parts = "".join(_table(part) for part in item.parts if isinstance(part, Table))
    parts += "".join(_text_table(part) for part in item.parts if isinstance(part, TextTable))
    pictures = [part for part in item.parts if isinstance(part, Chart | Map | Pictures)]
    if pictures:
        parts += f"<figure>{draw(pictures).svg()}</figure>"
    notes = _list(item.notes)
    if item.scaled:
        notes += f"<details><summary>Not as in the paper: {len(item.scaled)} settings (the paper's → here)</summary>"
        notes += f"{_list(item.scaled)}</details>"
    name = escape(item.id)
    files = f'<p class="quiet"><a href="{name}.md">Markdown</a> · <a href="{name}.csv">CSV</a>'
    files += f' · <a href="{name}.svg">SVG</a> · <a href="{name}.png">PNG</a></p>' if pictures else "</p>"
    return f'<section id="{name}"><h2>{name}: {escape(item.title)}</h2>{lines}{parts}{notes}{files}</section>'


def _list(lines: Sequence[str]) -> str:
    inside = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<ul class="quiet">{inside}</ul>' if lines else ""


def _table(table: Table) -> str:
    groups: list[tuple[str, int]] = []
    for column in table.columns:
        if groups and groups[-1][0] == column.group:
            groups[-1] = (column.group, groups[-1][1] + 1)
        else:
            groups.append((column.group, 1))
    above = "".join(f'<th colspan="{count}">{escape(name)}</th>' for name, count in groups)
    names = "".join(f"<th>{escape(column.name)}</th>" for column in table.columns)
    rows = "".join(
        f"<tr><td>{escape(name)}</td>{''.join(_entry(entry, table.digits) for entry in entries)}</tr>"
        for name, entries in table.rows
    )
    comparable = any(entry.paper is not None for _, entries in table.rows for entry in entries)
    return (
        f'<div class="scroll"><table><thead><tr><th></th>{above}</tr><tr><th>{escape(table.head)}</th>{names}</tr>'
        f"</thead><tbody>{rows}</tbody></table></div>{LEGEND if comparable else ''}"
    )


def _entry(entry: Entry, digits: int) -> str:
    ours, paper = format_ours(entry, digits), format_paper(entry)
    shown = (
        f'<span class="why">{escape(ours)}</span>' if entry.ours is None or entry.ours.mean is None else escape(ours)
    )
    if ours == QUOTED:
        return f'<td><span class="why">quoted</span><small>{escape(paper)}</small></td>'
    if entry.paper is None:
        return f"<td>{shown}</td>"
    kind = {True: "near", False: "far", None: ""}[entry.within]
    return f'<td>{shown}<small class="{kind}">{escape(paper)} {WITHIN[entry.within]}</small></td>'


def _text_table(table: TextTable) -> str:
    head = "".join(f"<th>{escape(word)}</th>" for word in table.head)
    rows = "".join("<tr>" + "".join(f"<td>{escape(word)}</td>" for word in row) + "</tr>" for row in table.rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
