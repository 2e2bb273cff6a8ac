"""Commands as people mistype them, in environments as machines have them."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from damage import ODD, spoil, spoil_run, spoil_yaml
from propos.config import keys
from propos.methods import find_method
from reviews import of_caches, of_edits, of_exports, of_weights
from sources import any_source, pictures

# A command that trains after all is to be over in a moment.
QUICK = {
    "network.backbone": "resnet-small", "network.hidden": 16, "network.dimension": 8, "train.batch_size": 16, "train.epochs": 1,
    "train.warmup": 0, "estep.restarts": 1, "views.size": 8,
}  # fmt: skip
OWN = [f"propos.{key}" for key in find_method("propos").Settings.model_fields]
STREAMS = ["open"] * 12 + ["no stdout", "no stderr", "no stdin", "full", "gone", "ascii"]


@dataclass
class Attack:
    """One command: its arguments, what differs in its environment (None: not set), and its streams."""

    arguments: list[str]
    environment: dict[str, str | None] = field(default_factory=dict)
    streams: str = "open"


def make(draw: Random, folder: Path, run: Path) -> Attack:
    """Make a command and all that it reads in a folder of its own; `run` is a run that is whole."""
    kinds = [
        *[_of_source] * 3,
        *[_of_settings] * 2,
        *[_of_run] * 3,
        _of_words,
        of_edits,
        of_exports,
        of_weights,
        of_caches,
    ]
    kind = draw.choice(kinds)
    arguments = [text.replace("\0", "") for text in kind(draw, folder, run)]
    environment = _environment(draw, folder) if draw.random() < 0.25 else {}
    if (folder / "caches").exists():
        environment.setdefault("PROPOS_CACHE", str(folder / "caches"))
    return Attack(arguments, environment, draw.choice(STREAMS))


def quick(*but: str) -> list[str]:
    """Return settings for a short training, but for some keys."""
    return [part for key, value in QUICK.items() if key not in but for part in ("--set", f"{key}={value}")]


def _of_source(draw: Random, folder: Path, run: Path) -> list[str]:
    source = any_source(draw, folder)
    output = draw.choice(
        ["out.csv", "out.json", "out.parquet", source, "photos/one/00.png", "nowhere/out.csv", "/dev/full"]
    )
    training = ["run", source, "-k", "3", *quick(), *draw.choice([[], ["--labels", "folders"], ["--no-report"]])]
    return draw.choice(
        [
            ["inspect", source, *draw.choice([[], ["--json"], ["--views", "views.png"], ["--views", source]])],
            ["inspect", source, "-k", draw.choice(ODD)],
            ["predict", str(run), source, "-o", output],
            ["predict", str(run), source, "-o", "out.csv"],
            ["evaluate", str(run), "--test", source, *draw.choice([[], ["--knn"], ["--json"]])],
            ["evaluate", str(run), "--labels", source],
            training,
            [*training, "--from", str(run)],
        ]
    )


def _of_settings(draw: Random, folder: Path, run: Path) -> list[str]:
    pictures(folder / "photos")
    start = ["run", "photos"]
    way = draw.randrange(5)
    if way == 0:
        key = draw.choice([*keys(), *OWN, "propos", "nothing", "train.", "propos.", ""])
        method = ["--method", "propos"] if key in OWN else []
        return [*start, "-k", "3", *quick(key), *method, "--set", f"{key}={draw.choice(ODD)}"]
    if way == 1:
        shutil.copyfile(run / "config.yaml", folder / "mine.yaml")
        draw.choice([spoil_yaml, spoil_yaml, spoil])(draw, folder / "mine.yaml")
        return [*start, "--config", "mine.yaml", *quick(), *draw.choice([[], ["-k", "3"]])]
    if way == 2:
        option = draw.choice(
            [
                "-k",
                "--time",
                "--epochs",
                "--seed",
                "--method",
                "--recipe",
                "--device",
                "--labels",
                "--from",
                "--data",
                "--out",
            ]
        )
        clusters = [] if option == "-k" else ["-k", "3"]
        safe = quick("train.epochs") if option == "--time" else quick()
        return [*start, *clusters, *safe, option, draw.choice([value for value in ODD if value not in ("", "1", "3")])]
    if way == 3:
        values = draw.choice(["2..4", "4..2", "2..", "..", "1..3", "2..2", "30..40", "-2..5", f"2..{10**20}", "2...4"])
        return draw.choice([[*start, *quick("train.warmup"), "-k", values], ["suggest-k", str(run), "-k", values]])
    name = draw.choice(["dcboost", "byol", "kmeans", "pcl", "moco", "cc", "simclr", "propos-no-psl", "PROPOS"])
    return [*start, "-k", draw.choice(["2", "3", "30", "31"]), *quick(), "--method", name]


def _of_run(draw: Random, folder: Path, run: Path) -> list[str]:
    shutil.copytree(run, folder / "run", symlinks=True)
    spoil_run(draw, folder / "run")
    if draw.random() < 0.1:
        (folder / "run" / ".lock").mkdir()
    pictures(folder / "new")
    return draw.choice(
        [
            ["report", "run"],
            ["evaluate", "run", *draw.choice([[], ["--json"]])],
            [
                "evaluate",
                "run",
                draw.choice(["--knn", "--psa-preservation"]),
                "--neighbours",
                draw.choice(["1", "5", *ODD]),
            ],
            ["predict", "run", "new", "-o", "out.csv"],
            ["suggest-k", "run", "-k", "2..5"],
            ["run", "--resume", "--out", "run"],
            ["run", "new", *quick(), "--from", "run"],
            ["run", "new", "-k", "3", *quick(), "--out", "run"],
        ]
    )


def _of_words(draw: Random, folder: Path, run: Path) -> list[str]:
    odd = draw.choice(ODD)
    return draw.choice(
        [
            [], ["--version"], ["--help"], [odd], ["doctor"], ["methods"], ["recipes"], ["recipes", "show", odd], ["recipes", "show", "digits"],
            ["datasets"], ["datasets", "show", odd], ["datasets", "fetch", odd], ["cache"], ["cache", "list"], ["cache", "clean", "--older-than", odd],
            ["cache", "clean"], ["report", odd], ["evaluate", odd], ["predict", odd, odd, "-o", odd], ["suggest-k", odd], ["run", odd, odd],
            ["run", "--resume", "--out", odd], ["inspect", odd, "--data", odd], ["evaluate", str(run), "--sigma", odd, "--psa-preservation"],
            ["run", "digits", "--time", odd, "--epochs", odd],
        ]
    )  # fmt: skip


def _environment(draw: Random, folder: Path) -> dict[str, str | None]:
    (folder / "file").touch()
    places = ["/proc/nothing", "file", "", "~nosuch/x", "/dev/null", "relative", "\udc80", "a" * 300, "/"]
    names = [
        "HOME",
        "XDG_CACHE_HOME",
        "PROPOS_CACHE",
        "PROPOS_DATA",
        "TMPDIR",
        "PROPOS_CACHE_LIMIT",
        "COLUMNS",
        "LINES",
        "TERM",
        "LANG",
    ]
    several = ["WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID"]
    name = draw.choice([*names, *several])
    if name in ("HOME", "XDG_CACHE_HOME", "PROPOS_CACHE", "PROPOS_DATA", "TMPDIR"):
        changed = {name: draw.choice([None, *places])}
        return changed | ({"PROPOS_CACHE": None} if name in ("HOME", "XDG_CACHE_HOME") else {})
    value = draw.choice([text for text in ODD if "\0" not in text])
    if name == "WORLD_SIZE":
        # Without others to meet, a process that makes sense waits for them, and rightly.
        return {
            "WORLD_SIZE": value,
            "RANK": draw.choice(["-1", "x", "99", ""]),
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": "1",
        }
    return {name: value}


def environment_of(attack: Attack, cache: Path) -> dict[str, str]:
    """Return the whole environment of a command."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}
    whole: dict[str, str | None] = {
        **kept,
        "HOME": str(cache),
        "PROPOS_CACHE": str(cache / "caches"),
        "OMP_NUM_THREADS": "1",
        **attack.environment,
    }
    return {name: value for name, value in whole.items() if value is not None}
