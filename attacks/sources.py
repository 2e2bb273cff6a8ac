"""Images as people, accidents and strangers leave them."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

from damage import ODD, replace, spoil

COUNT = 30
NAMES = [
    "a b.png", "=1+1.png", "-k.png", "line\nbreak.png", "\x1b[31mred.png", "\u202egnp.exe.png", "n" * 251 + ".png", "back\\slash.png",
    "caf\udce9.png", ".hidden.png", "run.json", "x.npy", "CON.png", "%s%n.png", "'\";.png", "~.png", "@cmd.png",
]  # fmt: skip


def pictures(folder: Path) -> Path:
    """Write a few small images, in two folders."""
    for number in range(COUNT):
        inner = folder / ("one", "two")[number % 2]
        inner.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(256, size=(10, 12, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(inner / f"{number:02d}.png")
        os.utime(inner / f"{number:02d}.png", (10**9, 10**9))  # caches are named by it
    return folder


def any_source(draw: Random, folder: Path) -> str:
    """Make something in the folder that a person may name as images, and return its name."""
    return draw.choice(KINDS)(draw, folder)


def _folder(draw: Random, folder: Path) -> str:
    images = pictures(folder / "photos")
    files = sorted(images.rglob("*.png"))
    for path in draw.sample(files, draw.choice([0, 1, 5, 29, 30])):
        draw.choice([spoil, spoil, replace, _rename, _date, _other_image])(draw, path)
    if draw.random() < 0.2:
        (images / "loop").symlink_to(images)
    return "photos"


def _rename(draw: Random, path: Path) -> None:
    path.rename(path.with_name(draw.choice(NAMES)))


def _date(draw: Random, path: Path) -> None:
    second = draw.choice([0, -1, 2**31, 2**33, 253402300800, 2**35])
    os.utime(path, (second, second))


def _other_image(draw: Random, path: Path) -> None:
    shapes = [(1, 1), (1, 3000), (3000, 1), (65, 64), (8, 8)]
    image = Image.new(draw.choice(["L", "1", "P", "RGBA", "I", "F", "LA", "CMYK", "I;16"]), draw.choice(shapes))
    kind = draw.choice(["PNG", "TIFF", "GIF", "JPEG", "WEBP", "BMP", "ICO", "PPM"])
    try:
        image.save(path, kind)
    except (OSError, KeyError, ValueError):
        path.write_bytes(_huge_png(draw))


def _huge_png(draw: Random) -> bytes:
    side = draw.choice([9_000, 13_000])
    text = io.BytesIO()
    Image.new("1", (side, side)).save(text, "PNG")
    return text.getvalue()


def _list(draw: Random, folder: Path) -> str:
    pictures(folder / "photos")
    name = draw.choice(["list.csv", "list.txt", "list.CSV"])
    files = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*.png"))]
    labels = ["cat", "café", "", "=1+1", "nan", "\x1b[31m", "1", "dog\n", '"', "x" * 2000]
    rows = [f"{file},{draw.choice(labels)}" if draw.random() < 0.7 else file for file in files]
    rows += draw.choice([[], [name], ["/dev/zero"], ["../.."], ["nothing.png"] * 3, ["a\0b"], [","], files])
    header = draw.choice(["image,label", "image", "label,image", "", "image;label", "image,image", "\ufeffimage,label"])
    text = "\n".join([header, *rows])
    encoding = draw.choice(["utf-8", "latin-1", "utf-16", "utf-8-sig", "utf-32", "cp1252"])
    (folder / name).write_bytes(text.encode(encoding, "replace"))
    if draw.random() < 0.3:
        spoil(draw, folder / name)
    return name


def _zip(draw: Random, folder: Path) -> str:
    images = pictures(folder / "inside")
    way = draw.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    with zipfile.ZipFile(folder / "photos.zip", "w", way) as archive:
        for path in sorted(images.rglob("*.png")):
            name = draw.choice(
                [path.name] * 9 + ["../../up.png", "/root.png", "a\\b.png", "\x1b.png", "d/", "x/run.json"]
            )
            archive.writestr(name, path.read_bytes())
        if draw.random() < 0.2:
            archive.writestr("bomb.png", bytes(50_000_000))
    shutil.rmtree(images)
    if draw.random() < 0.6:
        spoil(draw, folder / "photos.zip")
    return "photos.zip"


def _array(draw: Random, folder: Path) -> str:
    shape = draw.choice(
        [(30, 8, 8)] * 6
        + [(30, 8, 8, 3), (30, 3, 8, 8), (0, 8, 8), (30, 0, 8), (30, 64), (1, 8, 8), (30, 8, 8, 7), (5,), ()]
    )
    values = np.random.default_rng(draw.randrange(100)).integers(256, size=shape)
    kind = draw.choice(
        ["uint8"] * 4 + ["float32", "float64", ">f8", "int64", "bool", "complex64", "M8[s]", "S3", "U5", "float16"]
    )
    array = values.astype(kind)
    if array.dtype.kind == "f" and array.size:
        array = array * draw.choice([1, 1e-30, 1e30, 1e300]) + draw.choice([0, 1e6, 1e9])
        array.reshape(-1)[0] = draw.choice([0, np.nan, np.inf, 3.4e38])
    array = np.asfortranarray(array) if draw.random() < 0.2 else array
    np.save(folder / "images.npy", array)
    if draw.random() < 0.4:
        draw.choice([spoil, _huge_shape])(draw, folder / "images.npy")
    return "images.npy"


def _huge_shape(draw: Random, path: Path) -> None:
    shape = draw.choice(
        ["(999999999, 8, 8)", "(-30, 8, 8)", "(30, 8, 8L)", "(10**9,)", "(30,) * 9", "__import__('os')"]
    )
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(2000))


def _archive(draw: Random, folder: Path) -> str:
    images = np.random.default_rng(0).integers(256, size=(30, 8, 8), dtype=np.uint8)
    labels = draw.choice(
        [np.arange(30) % 3, np.arange(29), np.array([b"a", b"b", b"\xff"] * 10), np.array([1.5, np.nan, np.inf] * 10),
         np.array(["a", "", "\x1b"] * 10), np.array([None, "a", 1] * 10, object), np.zeros((30, 2)), np.arange(30) > 3,
         np.array(["2020-01-01"] * 30, "M8[D]"), np.array(5), np.array([], int)]
    )  # fmt: skip
    content = {draw.choice(["images", "x", "data", "arr_0"]): images, draw.choice(["labels", "y", "target"]): labels}
    if draw.random() < 0.2:
        content["more"] = np.zeros((3, 3))
    save = draw.choice([np.savez, np.savez_compressed])
    save(folder / "images.npz", **content)
    if draw.random() < 0.4:
        spoil(draw, folder / "images.npz")
    return "images.npz"


def _thing(draw: Random, folder: Path) -> str:
    (folder / "empty").mkdir()
    os.mkfifo(folder / "pipe.npy")
    os.mkfifo(folder / "pipe.csv")
    things = [
        "nothing",
        "~nosuch/x",
        "empty",
        "pipe.npy",
        "pipe.csv",
        "/dev/null",
        "/dev/zero",
        "cifar-10",
        "digit",
        "a" * 5000,
        "-",
    ]
    return draw.choice(
        [*things, "stl-10", "mnist", ".", "x.npz", "http://x/y.zip", *(text for text in ODD if "\0" not in text)]
    )


KINDS: list[Callable[[Random, Path], str]] = [
    _folder,
    _folder,
    _list,
    _list,
    _zip,
    _array,
    _array,
    _archive,
    _archive,
    _thing,
]
