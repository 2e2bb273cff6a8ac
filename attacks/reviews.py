"""Attacks on corrections, exports, foreign weights and caches."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import safetensors.torch
import torch

from damage import ODD, replace, spoil, spoil_array, spoil_json, spoil_run
from propos.networks.pretrained import PRETRAINED, read_pretrained
from sources import COUNT, NAMES, pictures

CLUSTERS = 3
FORMS = ["csv", "parquet", "json", "coco", "embedding-atlas", "folders", "fiftyone", "model"]
ENDINGS = {"csv": "csv", "parquet": "parquet", "json": "json", "coco": "json", "embedding-atlas": "parquet"}


def weights(folder: Path) -> None:
    """Write a pretrained network's weights as their package has them, and as other people pass them on."""
    state = read_pretrained(None).state
    torch.save(state, folder / "weights.pth")
    safetensors.torch.save_file(state, folder / "weights.safetensors")


def of_edits(draw: Random, folder: Path, run: Path) -> list[str]:
    """Take in edits that are odd, or in a damaged file, or read a run with such a log."""
    shutil.copytree(run, folder / "run", symlinks=True)
    path = draw.choice([folder / "edits.jsonl", folder / "run" / "edits.jsonl"])
    _write_edits(draw, path, odd=draw.choice([0.0, 0.01, 0.15]))
    for _ in range(draw.choice([0, 1, 1, 2])):
        _attempt(draw.choice([spoil_json, spoil, replace]), draw, path)
    pictures(folder / "new")
    if path.parent == folder:
        return ["apply", "run", draw.choice(["edits.jsonl"] * 9 + ["nothing", ".", "/dev/zero", "run/edits.jsonl"])]
    return draw.choice(
        [
            ["apply", "run", "run/edits.jsonl"],
            ["report", "run"],
            ["evaluate", "run", "--json"],
            ["predict", "run", "new", "-o", "out.csv"],
            ["export", "run", "--to", draw.choice(["csv", "folders", "model", "coco"]), "-o", "out.csv"],
            ["run", "new", "-k", "3", "--from", "run", "--set", "train.epochs=1"],
        ]
    )


def of_exports(draw: Random, folder: Path, run: Path) -> list[str]:
    """Export a run whose images or results may be damaged, to places that may be none."""
    shutil.copytree(run, folder / "run", symlinks=True)
    images = pictures(folder / "photos")
    settings = folder / "run" / "config.yaml"
    settings.write_text(settings.read_text().replace(str(run.parent / "photos"), str(images)))
    if draw.random() < 0.5:
        _write_edits(draw, folder / "run" / "edits.jsonl", odd=0.0)
    for path in draw.sample(sorted(images.rglob("*.png")), draw.choice([0, 0, 1, 30])):
        draw.choice([spoil, replace, _rename])(draw, path)
    if draw.random() < 0.4:
        spoil_run(draw, folder / "run")
    form = draw.choice([*FORMS, *FORMS, "xml"])
    whole = f"out.{ENDINGS[form]}" if form in ENDINGS else "out"
    odd = ["", ".", "..", "/", "run", "run/out", "photos/out", "photos/one", "nowhere/out", "/dev/full", "/proc/out"]
    output = draw.choice([whole] * 12 + odd + ["n" * 250, "n" * 300, "\x1b[31m", "caf\udce9", *draw.sample(ODD, 3)])
    how = draw.choice([[], [], ["--how", "hardlink"], ["--how", "copy"], ["--how", "move"], ["--dry-run"]])
    return ["export", "run", "--to", form, "-o", output, *how]


def of_weights(draw: Random, folder: Path, run: Path) -> list[str]:
    """Start from weights that are damaged, hostile or another network's."""
    path = folder / f"mine.{draw.choice(['pth', 'safetensors'])}"
    draw.choice([_damaged_weights, _damaged_weights, _odd_weights, _odd_weights, _hostile_weights])(draw, path, run)
    source = str(pictures(folder / "photos"))
    name = draw.choice(["", "", ":efficientnet-lite0", ":resnet18", ":resnet50", ":", f":{draw.choice(ODD)}"])
    start = draw.choice([[], ["--start", f"pretrained{name}"], ["--start", draw.choice([*ODD, "scratch", "photos"])]])
    which = draw.choice([str(path)] * 9 + ["nothing", ".", "/dev/zero", "photos/one/00.png"])
    return ["run", source, "-k", draw.choice(["3", "2..4"]), "--weights", which, *start]


def of_caches(draw: Random, folder: Path, run: Path) -> list[str]:
    """Read images and features through caches that are damaged."""
    shutil.copytree(run.parent / "caches", folder / "caches")
    files = sorted(path for path in (folder / "caches").rglob("*") if path.is_file())
    for path in draw.sample(files, draw.choice([1, 1, 2, 4])):
        special = {".json": spoil_json, ".npy": spoil_array}.get(path.suffix)
        way: Callable[[Random, Path], None] = special if special is not None and draw.random() < 0.5 else spoil
        _attempt(draw.choice([way, way, way, replace, _exchange]), draw, path)
    photos = str(run.parent / "photos")
    return draw.choice(
        [
            ["run", photos, "-k", "3", "--start", "pretrained"],
            ["run", photos, "-k", "3", "--start", "pretrained", "--no-report", "--seed", "1"],
            ["run", photos, "-k", "3", "--recipe", "small-colour", "--epochs", "1"],
            ["inspect", photos],
            ["predict", str(run.parent / "seen"), photos, "-o", "out.csv"],
            ["evaluate", str(run), "--psa-preservation"],
            ["cache"],
            ["cache", "clean"],
            ["cache", "clean", "--older-than", "0"],
        ]
    )


def _write_edits(draw: Random, path: Path, odd: float = 0.15) -> None:
    edits = [_edit(draw, number) for number in range(draw.choice([1, 3, 20, 200, 20_000]))]
    for edit in edits:
        if draw.random() < odd:
            edit[draw.choice([*edit, "more"])] = draw.choice(
                [
                    None,
                    -1,
                    10**30,
                    1.5,
                    "",
                    "x" * 3000,
                    [],
                    {},
                    [[]],
                    True,
                    "\x1b[2J",
                    "e0",
                    [0, 1, 2],
                    ["one/00.png"] * 50,
                ]
            )
    end = draw.choice(["\n", "\n", "\n", "\r\n", "\n\n", " \n"])
    path.write_text(end.join(map(json.dumps, edits)) + draw.choice([end, end, "", "\0", '{"v":']))


def _edit(draw: Random, number: int) -> dict[str, Any]:
    """Return an edit that could be meant."""
    cluster, others = draw.randrange(CLUSTERS), [draw.randrange(CLUSTERS) for _ in range(2)]
    images = [
        f"{('one', 'two')[place % 2]}/{place:02d}.png" for place in draw.sample(range(COUNT), draw.choice([1, 5]))
    ]
    images += draw.choice([[], [], ["gone.png"], ["../up.png"]])
    title = draw.choice(["cats", "", "=1+1", "\u202ename", "a/b", "CON", "..", "<b>", "n" * 200, "é", None])
    ways: list[dict[str, Any]] = [
        {"op": "rename", "cluster": cluster, "name": title},
        {"op": "describe", "cluster": cluster, "text": title},
        {"op": "merge", "clusters": others, "into": cluster},
        {"op": "split", "images": images, "into": 10 + number},
        {"op": "move", "images": images, "into": cluster},
        {"op": "junk", "images": images},
        {"op": "junk", "cluster": cluster},
        {"op": "confirm", "images": images},
        {"op": "confirm", "cluster": cluster},
        {"op": "undo", "edit": f"e{draw.randrange(number + 1)}"},
        {"op": "redo", "edit": f"e{draw.randrange(number + 1)}"},
    ]
    # Seldom what most files would stumble over alone.
    return {"v": 1, "id": f"e{number}", **draw.choice(ways[:-2] * 4 + ways)}


def _attempt(way: Callable[[Random, Path], None], draw: Random, path: Path) -> None:
    with suppress(ValueError, KeyError, AttributeError, IndexError, OverflowError, OSError):  # it is damaged already
        if path.is_file():
            way(draw, path)


def _rename(draw: Random, path: Path) -> None:
    path.rename(path.with_name(draw.choice(NAMES)))


def _exchange(draw: Random, path: Path) -> None:
    """Put another cache's file of this name in its place."""
    others = sorted(other for other in path.parent.parent.rglob(path.name) if other != path and other.is_file())
    if others:
        shutil.copyfile(draw.choice(others), path)


def _damaged_weights(draw: Random, path: Path, run: Path) -> None:
    shutil.copyfile(run.parent / f"weights{path.suffix}", path)
    if draw.random() < 0.9:
        spoil(draw, path)


def _odd_weights(draw: Random, path: Path, run: Path) -> None:
    """Change one weight for what torch can save and no network has."""
    state: dict[str, Any] = dict(read_pretrained(None).state)
    key = draw.choice(sorted(state))
    tensor = state[key]
    state[key] = draw.choice(
        [
            lambda: tensor * float("nan"),
            lambda: tensor.half(),
            lambda: tensor.double(),
            lambda: tensor.bfloat16(),
            lambda: tensor.to(torch.complex64),
            lambda: tensor.to(torch.int64),
            lambda: tensor[None],
            lambda: tensor.new_zeros(0),
            lambda: tensor.to_sparse() if path.suffix == ".pth" else tensor,
            lambda: tensor.to("meta") if path.suffix == ".pth" else tensor,
            lambda: torch.quantize_per_tensor(tensor.float(), 0.1, 0, torch.qint8) if path.suffix == ".pth" else tensor,
            lambda: torch.zeros(1).expand(tensor.shape) if path.suffix == ".pth" else tensor,
            lambda: torch.nn.Parameter(tensor.float()),
            lambda: "text" if path.suffix == ".pth" else tensor,
        ]
    )()
    if draw.random() < 0.2:
        state[draw.choice(["\x1b[31m", "x" * 5000, "module.", ""])] = state.pop(key)
    whole: Any = state
    if path.suffix == ".pth":
        whole = draw.choice([state, {"state_dict": state}, {"model": {"state_dict": state}}, [state], {1: state}, None])
        torch.save(whole, path)
    else:
        safetensors.torch.save_file({name: value.contiguous() for name, value in state.items()}, path)


class _Harmful:
    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return Path.touch, (Path("ran"),)  # type: ignore[return-value]


def _hostile_weights(draw: Random, path: Path, run: Path) -> None:
    if draw.random() < 0.5:
        path.write_bytes(b"cposix\nsystem\n(S'touch ran'\ntR.")
    else:
        torch.save({name: _Harmful() for name in draw.choice([["a"], list(PRETRAINED)])}, path)
