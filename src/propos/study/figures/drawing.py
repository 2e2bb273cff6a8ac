"""Charts, maps and pictures drawn twice from one list of shapes: as SVG, and with Pillow as PNG."""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from PIL import Image, ImageDraw, ImageFont

from propos.study.figures.parts import Chart, Dots, Drawn, Map, Pictures, Series

WIDTH, PLOT, GAP, COLUMNS = 460.0, 200.0, 24.0, 2  # of a part, of a plot's height, between parts, and parts in a row
LEFT, RIGHT, TOP = 58.0, 12.0, 30.0
BELOW, KEY_LINE, LETTER = 36.0, 20.0, 7.0  # room for an axis's words, for a line of the key, and for a letter in it
ROW, MARK = 22.0, 7.0  # from one row of dots to the next, and half the height of a mean's mark
PICTURE, BESIDE = 44.0, 64.0  # the side of a picture, and from one to the next
INK, QUIET, LINE = "#1d1c1a", "#5f5c56", "#e3e0d9"
COLOURS = (
    "#0b6b69", "#c2571a", "#5b4fa3", "#a8324a", "#3d7d2b", "#8a6d00", "#2b6cb0", "#9b3d8f", "#6b5b4b", "#1a8f5a",
    "#d07a9a", "#7a8b99", "#b08d57", "#4a6fa5", "#7b9e3b", "#a15c38", "#5a8f8d", "#8f5a7d", "#c9a227", "#3f3f6e",
)  # fmt: skip
SCALE = 2  # of the PNG; it is drawn at twice that and made smaller, so that lines are smooth
FINER = 2


@dataclass(frozen=True)
class Path:
    """A line through points."""

    points: Sequence[tuple[float, float]]
    colour: str = INK
    width: float = 2.0


@dataclass(frozen=True)
class Disc:
    """A filled circle, or a ring."""

    x: float
    y: float
    radius: float
    colour: str
    ring: bool = False


@dataclass(frozen=True)
class Text:
    """TextTable at a place: left, middle or right of it."""

    x: float
    y: float
    words: str
    size: float = 12.0
    anchor: str = "start"
    colour: str = INK


@dataclass(frozen=True)
class Picture:
    """A PNG file as base64, in a square."""

    x: float
    y: float
    side: float
    png: str


Shape = Path | Disc | Text | Picture


@dataclass
class Sheet:
    """Shapes on paper."""

    width: float
    height: float
    shapes: list[Shape] = field(default_factory=list)

    def svg(self) -> str:
        """Return the sheet as SVG."""
        inside = "".join(_svg(shape) for shape in self.shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" height="{self.height:g}" font-family="system-ui, sans-serif">'
            f'<rect width="100%" height="100%" fill="#ffffff"/>{inside}</svg>\n'
        )

    def png(self) -> bytes:
        """Return the sheet as PNG."""
        times = SCALE * FINER
        image = Image.new("RGB", (round(self.width * times), round(self.height * times)), "white")
        drawing = ImageDraw.Draw(image)
        for shape in self.shapes:
            _paint(image, drawing, shape, times)
        small = image.resize((round(self.width * SCALE), round(self.height * SCALE)), Image.Resampling.LANCZOS)
        file = io.BytesIO()
        small.save(file, "PNG", optimize=True)
        return file.getvalue()


def _svg(shape: Shape) -> str:
    if isinstance(shape, Path):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)
        style = f'stroke="{shape.colour}" stroke-width="{shape.width:g}" stroke-linejoin="round"'
        return f'<polyline points="{points}" fill="none" {style}/>'
    if isinstance(shape, Disc):
        fill = f'fill="none" stroke="{shape.colour}" stroke-width="1.5"' if shape.ring else f'fill="{shape.colour}"'
        return f'<circle cx="{shape.x:.1f}" cy="{shape.y:.1f}" r="{shape.radius:g}" {fill}/>'
    if isinstance(shape, Text):
        place = f'x="{shape.x:.1f}" y="{shape.y:.1f}" font-size="{shape.size:g}" text-anchor="{shape.anchor}"'
        return f'<text {place} fill="{shape.colour}">{html.escape(shape.words)}</text>'
    place = f'x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.side:g}" height="{shape.side:g}"'
    return f'<image {place} href="data:image/png;base64,{html.escape(shape.png)}"/>'


def _paint(image: Image.Image, drawing: ImageDraw.ImageDraw, shape: Shape, times: int) -> None:
    if isinstance(shape, Path):
        points = [(x * times, y * times) for x, y in shape.points]
        drawing.line(points, shape.colour, max(1, round(shape.width * times)), joint="curve")
    elif isinstance(shape, Disc):
        x, y, r = shape.x * times, shape.y * times, shape.radius * times
        colours = {"outline": shape.colour, "width": round(1.5 * times)} if shape.ring else {"fill": shape.colour}
        drawing.ellipse((x - r, y - r, x + r, y + r), **colours)
    elif isinstance(shape, Text):
        anchor = {"start": "ls", "middle": "ms", "end": "rs"}[shape.anchor]
        font = ImageFont.load_default(shape.size * times)
        drawing.text((shape.x * times, shape.y * times), _plain(shape.words), shape.colour, font, anchor=anchor)
    else:
        with Image.open(io.BytesIO(base64.b64decode(shape.png)), formats=["PNG"]) as tile:
            side = round(shape.side * times)
            resized = tile.convert("RGB").resize((side, side), Image.Resampling.NEAREST)
            image.paste(resized, (round(shape.x * times), round(shape.y * times)))


def _plain(words: str) -> str:
    """Write Greek letters out, which Pillow's own font has not."""
    return words.replace("σ", "sigma").replace("λ", "lambda").replace("≤", "<=").replace("→", "to")


def draw(parts: Sequence[Drawn]) -> Sheet:
    """Arrange parts on one sheet, two per row."""
    columns = min(COLUMNS, len(parts))
    sheet = Sheet(columns * WIDTH + (columns + 1) * GAP, GAP)
    for start in range(0, len(parts), columns):
        tallest = 0.0
        for column, part in enumerate(parts[start : start + columns]):
            shapes, height = _drawn(part, GAP + column * (WIDTH + GAP), sheet.height)
            sheet.shapes += shapes
            tallest = max(tallest, height)
        sheet.height += tallest + GAP
    return sheet


def _drawn(part: Drawn, left: float, top: float) -> tuple[list[Shape], float]:
    if isinstance(part, Chart):
        return list(_chart(part, left, top)), TOP + PLOT + BELOW + KEY_LINE * (1 + len(_key(part)))
    if isinstance(part, Map):
        return list(_map(part, left, top)), WIDTH
    if isinstance(part, Dots):
        return list(_dots(part, left, top)), TOP + ROW * len(part.rows) + BELOW
    return list(_pictures(part, left, top)), TOP + 16 + len(part.rows) * (PICTURE + 6)


@dataclass(frozen=True)
class _Axes:
    """From numbers to places."""

    left: float
    top: float
    xs: tuple[float, float]
    ys: tuple[float, float]

    def place(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.xs[0]) / (self.xs[1] - self.xs[0])
        up = (y - self.ys[0]) / (self.ys[1] - self.ys[0])
        inner = WIDTH - LEFT - RIGHT
        return self.left + LEFT + across * inner, self.top + TOP + (1 - up) * PLOT


def _chart(chart: Chart, left: float, top: float) -> Iterable[Shape]:
    drawn = [series for series in chart.series if series.x]
    axes = _axes(chart, drawn, left, top)
    yield Text(left, top + 14, chart.title, 14)
    for value in ticks(*axes.ys):
        (x0, y), (x1, _) = axes.place(axes.xs[0], value), axes.place(axes.xs[1], value)
        yield Path(((x0, y), (x1, y)), LINE, 1)
        yield Text(x0 - 6, y + 4, f"{value:g}", 11, "end", QUIET)
    places = list(enumerate(chart.ticks)) if chart.ticks else [(each, f"{each:g}") for each in ticks(*axes.xs)]
    for value, words in places:
        x, y = axes.place(value, axes.ys[0])
        yield Text(x, y + 16, words, 11, "middle", QUIET)
    middle, low = axes.place(sum(axes.xs) / 2, axes.ys[0])
    yield Text(middle, low + 32, chart.across, 12, "middle", QUIET)
    if chart.level is not None:
        words, value = chart.level
        (x0, y), (x1, _) = axes.place(axes.xs[0], value), axes.place(axes.xs[1], value)
        yield Path(((x0, y), (x1, y)), QUIET, 1)
        yield Text(x1, y - 4, words, 11, "end", QUIET)
    for number, series in enumerate(drawn):
        yield from _line(series, axes, COLOURS[number % len(COLOURS)])
    number = 0
    for row, names in enumerate(_key(chart)):
        x, y = left + LEFT, low + BELOW + KEY_LINE * (row + 0.7)
        for name in names:
            yield Path(((x, y - 4), (x + 16, y - 4)), COLOURS[number % len(COLOURS)], 3)
            yield Text(x + 21, y, name, 12)
            x, number = x + _key_width(name), number + 1
    if not drawn:
        yield Text(*axes.place(0.5, 0.5), "nothing measured yet", 13, "middle", QUIET)


def _key(chart: Chart) -> list[list[str]]:
    """Return the names of a chart's lines, as many in a row as there is room for."""
    rows: list[list[str]] = []
    room = 0.0
    for series in (each for each in chart.series if each.x):
        room -= _key_width(series.name)
        if room < 0:
            rows.append([])
            room = WIDTH - LEFT - _key_width(series.name)
        rows[-1].append(series.name)
    return rows


def _key_width(name: str) -> float:
    return 34 + LETTER * len(_plain(name))


def _line(series: Series, axes: _Axes, colour: str) -> Iterable[Shape]:
    points = [axes.place(x, y) for x, y in zip(series.x, series.y, strict=True)]
    yield Path(points, colour, 2)
    for point in points if len(points) <= 12 else ():
        yield Disc(*point, 3, colour)
    for x, y, sd in zip(series.x, series.y, series.sd, strict=True) if series.sd else ():
        if sd:
            yield Path((axes.place(x, y - sd), axes.place(x, y + sd)), colour, 1)


def _axes(chart: Chart, drawn: Sequence[Series], left: float, top: float) -> _Axes:
    if not drawn:
        return _Axes(left, top, (0.0, 1.0), (0.0, 1.0))
    spreads = [(series, series.sd or [0.0] * len(series.y)) for series in drawn]
    lows = [y - (sd or 0) for series, sds in spreads for y, sd in zip(series.y, sds, strict=True)]
    highs = [y + (sd or 0) for series, sds in spreads for y, sd in zip(series.y, sds, strict=True)]
    levels = [] if chart.level is None else [chart.level[1]]
    xs = [x for series in drawn for x in series.x]
    across = (-0.3, len(chart.ticks) - 0.7) if chart.ticks else _opened(min(xs), max(xs), 0.0)
    return _Axes(left, top, across, _opened(min(lows + levels), max(highs + levels), 0.06))


def _opened(low: float, high: float, room: float) -> tuple[float, float]:
    """Return an interval with some room at its ends, and never of no length."""
    extent = (high - low) or abs(high) or 1.0
    return (low - room * extent, high + room * extent) if high > low else (low - extent / 2, high + extent / 2)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return about `count` round numbers between two values."""
    rough = (high - low) / about
    power = 10 ** math.floor(math.log10(rough))
    step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough)
    first = math.ceil(low / step)
    return [round(number * step, 12) for number in range(first, math.floor(high / step) + 1)]


def _dots(part: Dots, left: float, top: float) -> Iterable[Shape]:
    yield Text(left, top + 14, part.title, 14)
    first = left + LETTER * max(len(name) for name, _ in part.rows) + 14
    values = [value for _, row in part.rows for value in row]
    lowest = 0.0 if part.from_zero else min(values, default=0.0)
    xs = _opened(lowest, max(values), 0.06) if values else (0.0, 1.0)
    low = top + TOP + ROW * len(part.rows)

    def place(value: float) -> float:
        return first + (value - xs[0]) / (xs[1] - xs[0]) * (left + WIDTH - RIGHT - first)

    for value in ticks(*xs, about=4):
        yield Path(((place(value), top + TOP), (place(value), low)), LINE, 1)
        yield Text(place(value), low + 16, f"{value:,g}", 11, "middle", QUIET)
    for number, (name, row) in enumerate(part.rows):
        y, colour = top + TOP + ROW * (number + 0.5), COLOURS[number % len(COLOURS)]
        yield Text(left, y + 4, name, 12)
        if not row:
            yield Text(first, y + 4, "nothing measured", 11, "start", QUIET)
            continue
        middle, spread = fmean(row), stdev(row) if len(row) > 1 else 0.0
        ends = (max(xs[0], middle - spread), min(xs[1], middle + spread))
        yield Path(((place(ends[0]), y), (place(ends[1]), y)), colour, 2)
        yield Path(((place(middle), y - MARK), (place(middle), y + MARK)), colour, 2)
        for value in row:
            yield Disc(place(value), y, 3, colour)


def _map(part: Map, left: float, top: float) -> Iterable[Shape]:
    side = WIDTH - TOP
    yield Text(left, top + 14, part.title, 14)
    places = [(left + x * side, top + TOP + (1 - y) * side) for x, y in zip(part.x, part.y, strict=True)]
    for (x, y), group in zip(places, part.group, strict=True):
        yield Disc(x, y, 2.2, COLOURS[group % len(COLOURS)])
    for number in part.ringed:
        yield Disc(*places[number], 6, INK, ring=True)


def _pictures(part: Pictures, left: float, top: float) -> Iterable[Shape]:
    yield Text(left, top + 14, part.title, 14)
    first = left + LETTER * max(len(name) for name, _ in part.rows) + 12
    for place, name in enumerate(part.columns):
        yield Text(first + place * BESIDE + PICTURE / 2, top + TOP + 8, name, 11, "middle", QUIET)
    for number, (name, row) in enumerate(part.rows):
        y = top + TOP + 16 + number * (PICTURE + 6)
        yield Text(left, y + PICTURE / 2 + 4, name, 12)
        for place, png in enumerate(row):
            yield Picture(first + place * BESIDE, y, PICTURE, png)
