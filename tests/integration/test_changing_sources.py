"""Images that change while a run reads them."""

import json

import numpy as np
from sklearn.datasets import load_digits

from helpers.command import run, start
from helpers.hold import Hold
from helpers.interruption import results
from helpers.small import QUICK, as_flags


def test_an_array_cut_short_in_training_ends_the_run_with_one_line_and_can_be_put_back(tmp_path):
    images = tmp_path / "images.npy"
    np.save(images, (load_digits().images[:200] * 15).astype(np.uint8))
    whole = images.read_bytes()
    settings = {**QUICK, "train.checkpoint_minutes": 0.000001}
    arguments = ["run", images, "-k", 3, *as_flags(settings), "--epochs", 4, "--no-report", "--quiet", "--out"]
    assert run(*arguments, tmp_path / "sound").code == 0

    hold = Hold(tmp_path, "checkpoint/000002-*")
    process = start(*arguments, tmp_path / "cut", hold=hold)
    hold.reached(process)
    with images.open("r+b") as file:
        file.truncate(len(whole) // 10)
    hold.go_on()
    _, said = process.communicate()
    assert process.returncode == 1, said
    assert said.count("\n") == 1
    assert f"{images}: was cut short while it was in use; put the whole file back" in said
    assert json.loads((tmp_path / "cut/run.json").read_text())["status"] == "failed"

    images.write_bytes(whole)
    resumed = run("run", "--resume", "--out", tmp_path / "cut", "--quiet")
    assert resumed.code == 0, resumed.err
    assert results(tmp_path / "cut") == results(tmp_path / "sound")
