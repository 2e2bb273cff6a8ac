"""What TensorBoard shows of a run, read back by its own reader."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from PIL import Image

from helpers.command import command, run, start
from helpers.hold import Hold
from helpers.small import QUICK, as_flags, digits, quick_config, quick_train, save_digits
from propos.common.errors import Interrupted
from propos.runs import RunFolder
from propos.training import Silent

# TensorBoard's own files warn of what is to come in others' packages.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.full]

ARGUMENTS = as_flags(QUICK)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return save_digits(tmp_path_factory.mktemp("images") / "digits.npz")


@pytest.fixture(scope="module")
def watched(images):
    out = images.parent / "watched"
    done = run("run", images, *ARGUMENTS, "--set", "log.tensorboard=true", "--out", out, "--no-report")
    assert done.code == 0, done.err
    return out


def events(out):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(out / "tensorboard"), size_guidance={"images": 0, "scalars": 0, "histograms": 0})
    return read.Reload()


def history(out):
    return [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]


def test_its_curves_are_those_of_the_history(watched):
    read, lines = events(watched), history(watched)

    def curve(tag):
        return {event.step: event.value for event in read.Scalars(tag)}

    def of(part, key):
        return {line["epoch"]: line[part][key] for line in lines if line[part].get(key) is not None}

    for tag, part, key in (
        ("losses/total", "losses", "total"),
        ("losses/psa", "losses", "psa"),
        ("losses/psl", "losses", "psl"),
        ("rates/lr", "rates", "lr"),
        ("scores/nmi", "measures", "nmi"),
        ("scores/accuracy", "measures", "accuracy"),
        ("clusters/smallest", "measures", "smallest_cluster"),
        ("clusters/largest", "measures", "largest_cluster"),
        ("clusters/moved", "measures", "churn"),
    ):
        assert curve(tag) == pytest.approx(of(part, key), rel=1e-6), tag
        assert curve(tag), tag
    last = lines[-1]["measures"]
    assert curve("spread")[len(lines) - 1] == pytest.approx(
        last["uniformity_std"] / last["uniformity_reference"], rel=1e-6
    )


def test_its_last_sheet_has_a_row_of_typical_images_for_each_cluster(watched, images):
    read, pixels = events(watched), np.load(images)["images"]
    drawn = read.Images("clusters/typical")
    epochs = len(history(watched)) - 1
    assert [event.step for event in drawn] == list(range(epochs + 1))
    sheet = np.asarray(Image.open(io.BytesIO(drawn[-1].encoded_image_string)).convert("L"), dtype=float)
    table = pyarrow.parquet.read_table(watched / "clusters.parquet")
    clusters, distance = (table[name].to_numpy() for name in ("cluster", "distance"))
    for cluster in np.unique(clusters):
        members = np.flatnonzero(clusters == cluster)
        nearest = members[distance[members].argmin()]
        shown = sheet[cluster * 50 : cluster * 50 + 48, :48]
        scaled = pixels[nearest].astype(float) / pixels.max() * 255
        wanted = np.asarray(Image.fromarray(scaled.astype(np.uint8)).resize((48, 48), Image.Resampling.BILINEAR))
        assert np.corrcoef(shown.ravel(), wanted.ravel())[0, 1] > 0.99
    sizes = read.Histograms("clusters/sizes")[-1].histogram_value
    assert sizes.sum == len(table)


def test_watching_changes_no_result(watched, images):
    out = images.parent / "unwatched"
    done = run("run", images, *ARGUMENTS, "--out", out, "--no-report")
    assert done.code == 0, done.err
    for name in ("embeddings.npy", "model.safetensors", "prototypes.npy"):
        assert (out / name).read_bytes() == (watched / name).read_bytes()
    assert not (out / "tensorboard").exists()


def test_a_resumed_run_logs_each_epoch_once(watched, images, tmp_path):
    # Of an epoch's three steps and its end there are four checkpoints: the fifth is written after the epoch was logged.
    out, hold = tmp_path / "run", Hold(tmp_path, "checkpoint/000005-*")
    settings = as_flags({"log.tensorboard": True, "train.checkpoint_minutes": 1e-6})
    process = start("run", images, *ARGUMENTS, *settings, "--out", out, "--no-report", hold=hold)
    hold.reached(process)
    process.send_signal(9)
    process.communicate()
    done = run("run", "--resume", "--out", out, "--no-report")
    assert done.code == 0, done.err
    ours, theirs = (events(folder).Scalars("losses/total") for folder in (out, watched))
    assert [(event.step, event.value) for event in ours] == [(event.step, event.value) for event in theirs]


def test_a_run_stopped_within_an_epoch_keeps_its_sheet_and_holds_no_file_open(tmp_path):
    class Watching(Silent):
        asked = False

        def step(self, epoch, step):
            self.asked = epoch == 1

    source, settings, watching = digits(), {"log__tensorboard": True}, Watching()
    run = RunFolder.create(tmp_path / "run", {"status": "running"}, quick_config(source, **settings))
    with pytest.raises(Interrupted):
        quick_train(source, run, watching, lambda: watching.asked, **settings)
    held = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    assert not [path for path in held if path.is_relative_to(tmp_path)]
    quick_train(source, run, **settings)
    read = events(tmp_path / "run")
    assert [event.step for event in read.Images("clusters/typical")] == [0, 1, 2, 3]
    assert [event.step for event in read.Scalars("losses/total")] == [0, 1, 2]


def test_without_the_extra_one_line_says_its_name(images, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    done = command(capsys, "run", images, "--set", "log.tensorboard=true", "--out", tmp_path / "run")
    assert done.code == 2
    assert done.err == ("propos: log.tensorboard: TensorBoard is not installed: pip install 'propos[tensorboard]'\n")
    assert not (tmp_path / "run").exists()
