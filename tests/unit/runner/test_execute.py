"""Carrying out plans: what is written, and what is not."""

import hashlib
import resource
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
import safetensors.numpy

from helpers.small import QUICK, digits
from propos.common.errors import InputError, Interrupted, RunFailed
from propos.runner import Request, SilentReporter, execute_plan, plan
from propos.runs import Run

IMAGES = digits().images[..., 0]


def planned(**settings):
    return plan(
        Request(source=IMAGES, clusters=10, recipe="digits", seed=0, settings={**QUICK, "train.epochs": 1, **settings})
    )


def test_without_a_folder_nothing_is_written_and_the_results_are_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with planned() as one:
        alone = execute_plan(one)
        assert not list(tmp_path.iterdir())
        kept = execute_plan(one, tmp_path / "run")
    assert np.array_equal(alone.embeddings, kept.embeddings)
    assert np.array_equal(np.load("run/embeddings.npy"), alone.embeddings)


def test_a_failure_is_known_by_its_code(tmp_path):
    with planned(**{"train.lr": 1e30, "train.optimiser": "sgd"}) as hopeless, pytest.raises(RunFailed) as failure:
        execute_plan(hopeless, tmp_path / "run")
    assert failure.value.code == "nan"
    info = Run.open(tmp_path / "run").info
    assert (info.status, info.failure) == ("failed", "nan")


def test_a_folder_that_holds_something_else_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with planned() as one, pytest.raises(InputError, match="not empty"):
        execute_plan(one, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_losses_that_start_too_late_are_warned_of_with_the_setting_that_starts_them(tmp_path):
    warnings = []
    with planned(**{"propos.psl_start": 1, "propos.pull_weight": 0.1}) as one:
        execute_plan(one, tmp_path / "run", SilentReporter(warn=warnings.append))
    late = "would start at epoch 1 of 1 (the first is 0)"
    assert warnings == [
        f"psl {late}: lower propos.psl_start, or train longer (--epochs)",
        f"pull {late}: raise propos.pull_share, or train longer (--epochs)",
    ]


@contextmanager
def room_for(largest_file):
    """Let no file grow beyond so many bytes, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_before_the_first_checkpoint_is_said_so(tmp_path):
    with planned() as one, room_for(20_000), pytest.raises(RunFailed) as failure:
        execute_plan(one, tmp_path / "run")
    assert "free some space" in str(failure.value)
    assert "there is no checkpoint yet; start again by fitting the same images again" in str(failure.value)


def test_a_disk_too_full_for_the_settings_leaves_no_folder(tmp_path):
    with planned() as one, room_for(100), pytest.raises(OSError, match="File too large"):
        execute_plan(one, tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_where_nothing_was_saved_or_all_is_damaged_no_good_checkpoint_is_promised(tmp_path):
    with planned(**{"train.lr": 1e30, "train.optimiser": "sgd"}) as hopeless, pytest.raises(RunFailed) as failure:
        execute_plan(hopeless, tmp_path / "run")
    assert "checkpoint" not in str(failure.value)
    (tmp_path / "run" / "checkpoint").mkdir()
    (tmp_path / "run" / "checkpoint" / f"000001-{'0' * 32}.safetensors").write_bytes(b"damaged")
    with planned(**{"train.lr": 1e30, "train.optimiser": "sgd"}) as again, pytest.raises(RunFailed) as failure:
        execute_plan(again, tmp_path / "run")
    assert failure.value.code == "checkpoint"
    assert "every checkpoint is damaged" in str(failure.value)
    assert "good" not in str(failure.value)


def test_a_checkpoint_that_does_not_fit_leaves_a_run_that_failed(tmp_path):
    def stopping():
        return nullcontext(lambda: bool(list((tmp_path / "run" / "checkpoint").glob("*"))))

    with planned(**{"train.checkpoint_minutes": 1e-9}) as one:
        with pytest.raises(Interrupted):
            execute_plan(one, tmp_path / "run", stopping=stopping)
        for path in (tmp_path / "run" / "checkpoint").iterdir():
            path.unlink()
        content = safetensors.numpy.save({"network.other": np.zeros(1, np.float32)}, {"state": "{}"})
        name = f"000001-{hashlib.sha256(content).hexdigest()[:32]}.safetensors"
        (tmp_path / "run" / "checkpoint" / name).write_bytes(content)
        with pytest.raises((InputError, RunFailed)):
            execute_plan(one, tmp_path / "run")
    assert Run.open(tmp_path / "run").info.status == "failed"
