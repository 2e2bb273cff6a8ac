"""Damage done to files, folders and texts, always the same for the same draw."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from random import Random

import numpy as np

ODD = [
    "", " ", "-1", "0", "1", "2", "3", "1.5", "nan", ".nan", "inf", ".inf", "-.inf", "1e400", "1e-400", str(10**20), str(10**23),
    "9" * 5000, "true", "null", "~", "[]", "{}", "[1, 2]", "[2, 1]", "{a: 1}", "two", "'", '"', "\x1b[31m", "٣", "é", "!!python/object:os.system",
    "&a [*a]", "[" * 3000, "2020-01-01", "0x10", "1_000", "..", "\udc80", "%s", "=1+1",
]  # fmt: skip


def spoil(draw: Random, path: Path) -> None:
    """Damage one file in one way."""
    assert path.is_file(), path  # what never ends would be read here
    content = path.read_bytes()
    way = draw.randrange(8)
    if way == 0:
        path.write_bytes(content[: draw.randrange(len(content) + 1)])
    elif way == 1:
        path.write_bytes(b"")
    elif way == 2:
        path.write_bytes(content + draw.randbytes(draw.choice([1, 100, 5000])))
    elif way == 3:
        path.write_bytes(draw.randbytes(draw.choice([1, 16, 2000])))
    elif way == 4 and len(content) > 8:
        start = draw.randrange(min(len(content), 400))  # where headers are
        path.write_bytes(content[:start] + draw.randbytes(4) + content[start + 4 :])
    else:
        changed = bytearray(content)
        for _ in range(draw.choice([1, 4, 64])):
            if changed:
                changed[draw.randrange(len(changed))] = draw.randrange(256)
        path.write_bytes(bytes(changed))


def replace(draw: Random, path: Path) -> None:
    """Put something that is no file, or none at all, in a file's place."""
    path.unlink()
    way = draw.randrange(6)
    if way == 0:
        os.mkfifo(path)
    elif way == 1:
        path.mkdir()
    elif way == 2:
        path.symlink_to(path.name)
    elif way == 3:
        path.symlink_to("/dev/zero" if draw.random() < 0.5 else "/nowhere")
    elif way == 4:
        path.symlink_to("/dev/full")


def spoil_json(draw: Random, path: Path) -> None:
    """Change one value of a JSON file, or of one line of it, for another kind of value."""
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    place = draw.randrange(len(lines))
    table = json.loads(lines[place])
    inner = table
    while draw.random() < 0.5 and any(isinstance(value, dict) and value for value in inner.values()):
        inner = draw.choice([value for value in inner.values() if isinstance(value, dict) and value])
    key = draw.choice(sorted(inner))
    values = [
        None,
        -1,
        0,
        10**30,
        1e308,
        "",
        "x" * 3000,
        [],
        {},
        [[]],
        True,
        "\ud800",
        "\x1b[2J",
        "../../etc/passwd",
        float("nan"),
    ]
    if draw.random() < 0.2:
        del inner[key]
    else:
        inner[key] = draw.choice(values)
    lines[place] = json.dumps(table)
    path.write_text("\n".join(lines) + "\n")


def spoil_yaml(draw: Random, path: Path) -> None:
    """Change the value of one line of settings."""
    lines = path.read_text().splitlines()
    place = draw.randrange(len(lines))
    key = lines[place].partition(":")[0]
    lines[place] = f"{key}: {draw.choice(ODD)}"
    path.write_text("\n".join(lines) + "\n", errors="surrogateescape")


def spoil_array(draw: Random, path: Path) -> None:
    """Give an array other values, another type or another shape."""
    array = np.load(path)
    way = draw.randrange(7)
    if way == 0:
        array.reshape(-1)[draw.randrange(array.size)] = draw.choice([np.nan, np.inf, -np.inf, 1e30, 0])
    elif way == 1:
        array = array[: draw.randrange(len(array))]
    elif way == 2:
        array = array.astype(draw.choice(["float64", "int8", "complex64", "S4", ">f4", "bool"]))
    elif way == 3:
        array = np.zeros_like(array)
    elif way == 4:
        array = array.reshape(-1)
    elif way == 5:
        array = np.repeat(array, 2, axis=draw.randrange(array.ndim))
    else:
        array = array * draw.choice([0.5, 1e20, -1])
    np.save(path, array)


def spoil_run(draw: Random, run: Path) -> None:
    """Damage a run folder in one to three places."""
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        files = sorted(path for path in run.rglob("*") if path.is_file() and "report" not in path.parts)
        if not files:
            return
        path = draw.choice(files)
        special = {".json": spoil_json, ".jsonl": spoil_json, ".yaml": spoil_yaml, ".npy": spoil_array}.get(path.suffix)
        way = draw.random()
        try:
            if special is not None and way < 0.6:
                special(draw, path)
            elif way < 0.75:
                spoil(draw, path)
            elif way < 0.85:
                replace(draw, path)
            elif way < 0.92:
                path.unlink()
            else:
                shutil.copyfile(draw.choice(files), run / draw.choice(files).relative_to(run))
        except (ValueError, KeyError, AttributeError, IndexError, OSError):
            continue  # it is damaged already
