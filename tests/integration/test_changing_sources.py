"""Images that change while a run reads them."""

import json
import os

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from helpers.command import run, start
from helpers.hold import Hold
from helpers.interruption import results
from helpers.small import QUICK, as_flags

pytestmark = pytest.mark.full

SETTINGS = as_flags({**QUICK, "train.checkpoint_minutes": 0.000001})
IMAGES = (load_digits().images[:200] * 15).astype(np.uint8)


def cut_in_training(folder, arguments, environment, images):
    """Train once undisturbed; a second time cut a file in the middle, and return what is then said."""
    assert run(*arguments, folder / "sound", env=environment).code == 0
    hold = Hold(folder, "checkpoint/000002-*")
    process = start(*arguments, folder / "cut", hold=hold, env=environment)
    hold.reached(process)
    path = images()
    whole = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(len(whole) // 10)
    hold.go_on()
    _, said = process.communicate()
    assert process.returncode == 1, said
    assert said.count("\n") == 1
    assert f"{path}: was cut short while it was in use" in said
    assert json.loads((folder / "cut/run.json").read_text())["status"] == "failed"
    return path, whole


def resume_to_the_same_bits(folder, environment):
    resumed = run("run", "--resume", "--out", folder / "cut", "--quiet", env=environment)
    assert resumed.code == 0, resumed.err
    assert results(folder / "cut") == results(folder / "sound")


def test_an_array_cut_short_in_training_ends_the_run_with_one_line_and_can_be_put_back(tmp_path):
    images = tmp_path / "images.npy"
    np.save(images, IMAGES)
    arguments = ["run", images, "-k", 3, *SETTINGS, "--epochs", 4, "--no-report", "--quiet", "--out"]
    path, whole = cut_in_training(tmp_path, arguments, dict(os.environ), lambda: images)
    path.write_bytes(whole)
    resume_to_the_same_bits(tmp_path, dict(os.environ))


def test_a_cache_cut_short_in_training_ends_the_run_with_one_line_and_is_made_again(tmp_path):
    (tmp_path / "photos").mkdir()
    for number, image in enumerate(IMAGES):
        Image.fromarray(image).save(tmp_path / f"photos/{number:03d}.png")
    environment = {**os.environ, "PROPOS_CACHE": str(tmp_path / "caches")}
    arguments = ["run", tmp_path / "photos", "-k", 3, *SETTINGS, "--epochs", 4, "--no-report", "--quiet", "--out"]
    cut_in_training(tmp_path, arguments, environment, lambda: next((tmp_path / "caches").glob("*/images.npy")))
    resume_to_the_same_bits(tmp_path, environment)
