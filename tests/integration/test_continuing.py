"""Adding images to a finished run, as a person would: propos run NEW --from RUN."""

import json
import signal

import numpy as np
import pyarrow.parquet
import pytest
from PIL import Image
from safetensors.numpy import load_file

from helpers.command import command, run, start
from helpers.hold import Hold
from helpers.interruption import results
from helpers.oracle import best_agreement
from helpers.small import QUICK, SHARED, as_flags, digits

SETTINGS = [*as_flags(QUICK), "--no-report"]
LONGER = ["--epochs", 6, "--set", "train.checkpoint_minutes=0.000001"]


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A run on 120 images, and the folder with 60 more in it."""
    folder = tmp_path_factory.mktemp("grown")
    images = digits(180).images[..., 0]
    (folder / "photos").mkdir()
    for number in range(120):
        Image.fromarray(images[number] * 15).save(folder / "photos" / f"{number:03d}.png")
    result = run("run", folder / "photos", "-k", 6, *SETTINGS, "--out", folder / "run", "--quiet")
    assert result.code == 0, result.err
    for number in range(120, 180):
        Image.fromarray(images[number] * 15).save(folder / "photos" / f"{number:03d}.png")
    return folder


def test_a_run_continues_with_added_images_and_keeps_cluster_ids(grown, tmp_path, capsys):
    arguments = ["--from", grown / "run", "--out", tmp_path / "more", "--set", "train.lr=0.0001"]
    result = command(capsys, "run", grown / "photos", *arguments)
    assert result.code == 0, result.err
    assert "120 images already known" in result.out
    assert "Finding 6 clusters in 180 images" in result.out
    old = pyarrow.parquet.read_table(grown / "run/clusters.parquet")
    new = pyarrow.parquet.read_table(tmp_path / "more/clusters.parquet")
    assert new["image"].to_pylist()[:120] == old["image"].to_pylist()
    before, after = np.array(old["cluster"]), np.array(new["cluster"])[:120]
    assert (before == after).sum() == best_agreement(before, after, 6)
    info = json.loads((tmp_path / "more/run.json").read_text())
    assert info["from"] == str((grown / "run").resolve())
    again = command(capsys, "run", "--from", tmp_path / "more", "--out", tmp_path / "third", "--quiet")
    assert again.code == 0, again.err  # the same folder, for as long as it went on before
    assert len((tmp_path / "third/history.jsonl").read_text().splitlines()) == 2


@pytest.mark.full
def test_a_continuation_that_chooses_its_number_begins_with_the_earlier_weights(grown, tmp_path, capsys):
    """At a rate of next to nothing, what it ends with is what it began with."""
    arguments = ["--from", grown / "run", "--out", tmp_path / "more", "-k", "4..7", "--epochs", 2]
    slow = ["--set", "propos.psl_start=1", "--set", "train.lr=1e-12", "--set", "train.weight_decay=0"]
    result = command(capsys, "run", grown / "photos", *arguments, *slow)
    assert result.code == 0, result.err
    assert "Continuing from" in result.out
    before, after = (load_file(folder / "model.safetensors") for folder in (grown / "run", tmp_path / "more"))
    learnt = [name for name in before if name.startswith("online.") and name.endswith("weight")]
    assert learnt
    for name in learnt:
        np.testing.assert_allclose(after[name], before[name], atol=1e-6)
    assert json.loads((tmp_path / "more/suggestion.json").read_text())["chosen"] in range(4, 8)


def test_a_run_that_learnt_nothing_is_not_gone_on_from(grown, tmp_path, capsys):
    pixels = tmp_path / "pixels"
    settings = ["--method", "kmeans-pixels", *as_flags(SHARED), "--no-report"]
    made = command(capsys, "run", grown / "photos", "-k", 6, *settings, "--out", pixels)
    assert made.code == 0, made.err
    result = command(capsys, "run", grown / "photos", "--from", pixels, "--out", tmp_path / "more")
    assert result.code == 2
    assert result.err == (
        f"propos: {pixels}: was made by kmeans-pixels, which trains nothing to continue from, and has no "
        f"corrections: correct it first (propos open {pixels}), or start a new run\n"
    )


def test_weights_go_on_only_in_a_network_that_has_their_places(grown, tmp_path, capsys):
    more = ["--from", grown / "run", "--out", tmp_path / "more", "--method", "simclr"]
    result = command(capsys, "run", grown / "photos", *more)
    assert result.code == 2
    assert "--method simclr" in result.err
    assert "was trained by propos, whose network differs" in result.err


@pytest.mark.full
def test_a_continuation_that_is_killed_and_resumed_ends_with_the_same_bits(grown, tmp_path):
    arguments = ["run", grown / "photos", "--from", grown / "run", *LONGER, "--quiet", "--out"]
    assert run(*arguments, tmp_path / "whole").code == 0
    hold = Hold(tmp_path, "checkpoint/000003-*")
    process = start(*arguments, tmp_path / "cut", hold=hold)
    hold.reached(process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    result = run("run", "--resume", "--out", tmp_path / "cut", "--quiet")
    assert result.code == 0, result.err
    assert results(tmp_path / "cut") == results(tmp_path / "whole")


def test_what_does_not_fit_is_refused_in_one_line(grown, tmp_path, capsys):
    Image.new("RGB", (8, 8), (200, 40, 0)).save(tmp_path / "colour.png")
    Image.fromarray(np.eye(8, dtype=np.uint8)).save(tmp_path / "grey.png")
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    info = json.loads((grown / "run/run.json").read_text())
    (unfinished / "run.json").write_text(json.dumps({**info, "status": "interrupted"}))
    (unfinished / "config.yaml").write_text((grown / "run/config.yaml").read_text())
    earlier = ["--from", grown / "run"]
    cases = [
        ([grown / "photos", "--from", unfinished], "is not finished (status: interrupted)"),
        ([tmp_path, *earlier], "contains colour images"),
        ([grown / "photos", *earlier, "--set", "network.hidden=64"], "network.hidden = 64"),
        ([grown / "photos", *earlier, "--recipe", "digits"], "--from and --recipe both give complete settings"),
        ([grown / "photos", *earlier, "--resume"], "no such folder"),
    ]
    for arguments, sentence in cases:
        result = command(capsys, "run", *arguments, "--out", tmp_path / "new")
        assert result.code == 2
        assert sentence in result.err
        assert result.err.count("\n") == 1
        assert not (tmp_path / "new").exists()
