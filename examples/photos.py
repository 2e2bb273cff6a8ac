"""Make a folder of pictures to practise on: python examples/photos.py photos [COUNT].

Eight kinds of scenes, drawn at random and as noisy as photographs, in one flat folder, with `truth.csv` next to it for
scoring. Nothing is downloaded.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

WIDTH, HEIGHT, COUNT = 192, 144, 240
Colour = tuple[int, int, int]


def shade(rng: np.random.Generator, colour: Colour, spread: int = 18) -> Colour:
    red, green, blue = (int(np.clip(part + rng.integers(-spread, spread + 1), 0, 255)) for part in colour)
    return red, green, blue


def slope(top: Colour, bottom: Colour) -> Image.Image:
    part = np.linspace(0, 1, HEIGHT)[:, None, None]
    pixels = np.array(top) * (1 - part) + np.array(bottom) * part
    return Image.fromarray(np.broadcast_to(pixels, (HEIGHT, WIDTH, 3)).astype(np.uint8))


def sunset(rng: np.random.Generator) -> Image.Image:
    image = slope(shade(rng, (60, 40, 110)), shade(rng, (250, 150, 70)))
    draw, horizon = ImageDraw.Draw(image), int(rng.integers(95, 115))
    x, radius = int(rng.integers(30, WIDTH - 30)), int(rng.integers(12, 22))
    draw.ellipse((x - radius, horizon - radius, x + radius, horizon + radius), shade(rng, (255, 220, 120)))
    draw.rectangle((0, horizon, WIDTH, HEIGHT), shade(rng, (40, 40, 80)))
    return image


def forest(rng: np.random.Generator) -> Image.Image:
    image = slope(shade(rng, (150, 190, 210)), shade(rng, (50, 90, 40)))
    draw = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(12, 20))):
        x, top, half = int(rng.integers(0, WIDTH)), int(rng.integers(10, 60)), int(rng.integers(10, 20))
        draw.rectangle((x - 2, top + 40, x + 2, HEIGHT), shade(rng, (80, 60, 40)))
        draw.polygon(((x, top), (x - half, top + 75), (x + half, top + 75)), shade(rng, (30, 100, 50), 30))
    return image


def bricks(rng: np.random.Generator) -> Image.Image:
    image = Image.new("RGB", (WIDTH, HEIGHT), shade(rng, (190, 180, 170)))
    draw, tall, long = ImageDraw.Draw(image), int(rng.integers(12, 18)), int(rng.integers(32, 44))
    for row, y in enumerate(range(0, HEIGHT, tall)):
        for x in range(-long if row % 2 else -long // 2, WIDTH, long):
            draw.rectangle((x + 2, y + 2, x + long - 1, y + tall - 1), shade(rng, (160, 75, 55), 22))
    return image


def night(rng: np.random.Generator) -> Image.Image:
    image = slope(shade(rng, (8, 10, 30), 6), shade(rng, (25, 30, 70), 10))
    draw = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(50, 90))):
        x, y, radius = rng.integers(0, WIDTH), rng.integers(0, HEIGHT), rng.uniform(0.5, 1.8)
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), shade(rng, (235, 235, 220), 20))
    x, y = int(rng.integers(30, WIDTH - 30)), int(rng.integers(20, 60))
    draw.ellipse((x - 14, y - 14, x + 14, y + 14), shade(rng, (240, 235, 200)))
    return image


def balls(rng: np.random.Generator) -> Image.Image:
    image = Image.new("RGB", (WIDTH, HEIGHT), shade(rng, (225, 220, 210)))
    draw = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(4, 8))):
        x, y, radius = int(rng.integers(20, WIDTH - 20)), int(rng.integers(20, HEIGHT - 20)), int(rng.integers(12, 26))
        colour = shade(rng, ((200, 40, 40), (40, 90, 200), (240, 190, 40))[rng.integers(3)])
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), colour)
        draw.ellipse((x - radius // 2, y - radius // 2, x - radius // 5, y - radius // 5), "white")
    return image


def cloth(rng: np.random.Generator) -> Image.Image:
    image = Image.new("RGB", (WIDTH, HEIGHT), shade(rng, (235, 235, 240)))
    draw, step = ImageDraw.Draw(image), int(rng.integers(10, 18))
    for x in range(-HEIGHT, WIDTH, 2 * step):
        draw.line((x, 0, x + HEIGHT, HEIGHT), shade(rng, (40, 70, 140)), step)
    return image


def flowers(rng: np.random.Generator) -> Image.Image:
    image = Image.new("RGB", (WIDTH, HEIGHT), shade(rng, (80, 140, 60)))
    draw = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(8, 14))):
        x, y, petal = rng.integers(10, WIDTH - 10), rng.integers(10, HEIGHT - 10), int(rng.integers(6, 11))
        colour = shade(rng, ((230, 90, 150), (250, 250, 250))[rng.integers(2)])
        for turn in np.arange(6) * np.pi / 3:
            a, b = x + petal * np.cos(turn), y + petal * np.sin(turn)
            draw.ellipse((a - petal * 0.6, b - petal * 0.6, a + petal * 0.6, b + petal * 0.6), colour)
        draw.ellipse((x - petal * 0.5, y - petal * 0.5, x + petal * 0.5, y + petal * 0.5), (240, 200, 40))
    return image


def houses(rng: np.random.Generator) -> Image.Image:
    image = slope(shade(rng, (140, 180, 230)), shade(rng, (210, 225, 240)))
    draw, x = ImageDraw.Draw(image), int(rng.integers(-20, 5))
    while x < WIDTH:
        wide, top = int(rng.integers(34, 56)), int(rng.integers(30, 70))
        draw.rectangle((x, top, x + wide, HEIGHT), shade(rng, (180, 165, 150), 40))
        draw.polygon(((x, top), (x + wide // 2, top - 18), (x + wide, top)), shade(rng, (150, 60, 50)))
        for row in range(top + 10, HEIGHT - 16, 24):
            for column in range(x + 7, x + wide - 12, 16):
                draw.rectangle((column, row, column + 8, row + 12), shade(rng, (70, 80, 100)))
        x += wide + 3
    return image


KINDS: tuple[Callable[[np.random.Generator], Image.Image], ...] = (
    sunset,
    forest,
    bricks,
    night,
    balls,
    cloth,
    flowers,
    houses,
)


def photograph(draw: Callable[[np.random.Generator], Image.Image], rng: np.random.Generator) -> Image.Image:
    """Draw a scene, out of focus by a pixel, with a camera's light and noise."""
    pixels = np.asarray(draw(rng).filter(ImageFilter.GaussianBlur(0.8)), dtype=float)
    pixels = pixels * rng.uniform(0.8, 1.15) + rng.normal(0, 7, pixels.shape)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def main(folder: Path, count: int) -> None:
    """Write the pictures, mixed up, and the list of what they are."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    rows = []
    for number, place in enumerate(rng.permutation(count)):
        kind = KINDS[place % len(KINDS)]
        name = f"IMG_{number:04d}.jpg"
        photograph(kind, rng).save(folder / name, quality=90)
        rows.append((name, kind.__name__))
    with folder.with_name("truth.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("image", "label"), *rows])


if __name__ == "__main__":
    if len(sys.argv) < 2 or Path(sys.argv[1]).exists():
        sys.exit("give a folder that does not exist: python examples/photos.py photos [COUNT]")
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else COUNT)
