import hashlib
from contextlib import suppress

import numpy as np
import pytest
import safetensors.numpy
import torch

from helpers.forked import Forked
from helpers.hold import Hold
from helpers.quick import quick_cases
from helpers.small import CPU, digits, quick_config, quick_train, same_weights, without_times
from propos.common.errors import InputError, Interrupted, RunFailed
from propos.runs import Run, RunFolder
from propos.training import Silent
from propos.training.checkpoint import load_checkpoint
from propos.training.learner import build_learner

ALWAYS = {"train__checkpoint_minutes": 1e-9}  # a checkpoint after every step, and at the end of an epoch


class Listener(Silent):
    """Keeps the warnings of a run."""

    def __init__(self):
        super().__init__()
        self.warnings = []
        super().__init__(self.warnings.append)


def new_run(path, **settings):
    return RunFolder.create(path, {"status": "running"}, quick_config(**settings))


def stop_after(calls):
    """Return a stop that asks to stop at the nth time it is asked."""
    counter = iter(range(calls))
    return lambda: next(counter, None) is None


def numbers(run):
    """Return the numbers of a run's checkpoints."""
    return sorted(int(path.name[:6]) for path in (run.path / "checkpoint").iterdir())


@pytest.fixture(scope="module")
def uninterrupted():
    return quick_train()


# After an E-step, within an epoch before and after scattering starts, and at the last step.
@pytest.mark.parametrize("calls", quick_cases(1, 6, rest=[0, 4, 11]))
def test_a_run_stopped_anywhere_resumes_to_the_same_bits(tmp_path, uninterrupted, calls):
    run = new_run(tmp_path / "run")
    with pytest.raises(Interrupted):
        quick_train(run=run, stop=stop_after(calls))
    resumed = quick_train(run=run)
    assert same_weights(resumed.model.method, uninterrupted.model.method)
    assert resumed.table.cluster.tolist() == uninterrupted.table.cluster.tolist()
    assert (resumed.embeddings == uninterrupted.embeddings).all()
    assert without_times(resumed.history) == without_times(uninterrupted.history)


@pytest.mark.full
def test_mixed_precision_resumes_to_the_same_bits(tmp_path):
    # Few steps: a CPU only emulates half precision.
    settings = {"train__precision": "float16", "train__epochs": 1, "train__batch_size": 32}
    run = new_run(tmp_path / "run", **settings)
    with pytest.raises(Interrupted):
        quick_train(digits(70), run=run, stop=stop_after(1), **settings)
    resumed = quick_train(digits(70), run=run, **settings)
    assert same_weights(resumed.model.method, quick_train(digits(70), **settings).model.method)


@pytest.mark.full
def test_a_seed_gives_the_same_run_twice_and_another_seed_another(uninterrupted):
    again = quick_train()
    assert same_weights(again.model.method, uninterrupted.model.method)
    assert without_times(again.history) == without_times(uninterrupted.history)
    assert not same_weights(quick_train(seed=1).model.method, uninterrupted.model.method)


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_a_damaged_checkpoint_is_noticed_and_the_one_before_used(tmp_path, uninterrupted, damage):
    run = new_run(tmp_path / "run")
    with pytest.raises(Interrupted):
        quick_train(run=run, stop=stop_after(10), **ALWAYS)
    newest = max((tmp_path / "run" / "checkpoint").iterdir())
    content = bytearray(newest.read_bytes())
    if damage == "cut":
        del content[-100:]
    else:
        content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    listener = Listener()
    resumed = quick_train(run=run, progress=listener)
    assert any("damaged" in warning for warning in listener.warnings)
    assert same_weights(resumed.model.method, uninterrupted.model.method)
    assert without_times(resumed.history) == without_times(uninterrupted.history)


def test_when_every_checkpoint_is_damaged_the_run_says_so(tmp_path):
    run = new_run(tmp_path / "run")
    with pytest.raises(Interrupted):
        quick_train(run=run, stop=stop_after(10))
    for path in (tmp_path / "run" / "checkpoint").iterdir():
        path.write_bytes(b"")
    with pytest.raises(RunFailed, match="every checkpoint is damaged"):
        quick_train(run=run)


def test_a_run_that_ends_before_time_is_up_saves_one_checkpoint_at_its_end(tmp_path):
    run = new_run(tmp_path / "run")
    quick_train(run=run)
    assert numbers(run) == [1]


def test_checkpoints_come_when_time_is_up_and_the_newest_two_are_kept(tmp_path):
    run = new_run(tmp_path / "run")
    quick_train(run=run, **ALWAYS)
    assert numbers(run) == [11, 12]  # every step of three epochs, and the end of each


@pytest.mark.full
def test_a_run_that_goes_back_several_epochs_ends_with_the_same_bits(tmp_path, uninterrupted):
    run = new_run(tmp_path / "run")

    class Crash(Silent):
        def epoch(self, record):
            if record["epoch"] == 1:
                raise ZeroDivisionError

    with pytest.raises(Interrupted):  # at the second step of the first epoch
        quick_train(run=run, stop=stop_after(2))
    with pytest.raises(ZeroDivisionError):
        quick_train(run=run, progress=Crash())
    assert numbers(run) == [1]
    assert same_weights(quick_train(run=run).model.method, uninterrupted.model.method)
    assert len(Run.open(run.path).history) == 4


class LetsGo(Silent):
    """Lets a held checkpoint be written once the second step is taken."""

    def __init__(self, hold):
        super().__init__()
        self.hold = hold

    def step(self, epoch, step):
        if step == 2:
            self.hold.go_on()


def stop_after_two_steps(folder, hold):
    with suppress(Interrupted):
        quick_train(run=RunFolder(folder), progress=LetsGo(hold), stop=stop_after(2), **ALWAYS)


@pytest.mark.full
def test_training_continues_while_a_checkpoint_is_written_from_a_copy(tmp_path, uninterrupted):
    """The second step changes the weights before anything of the first one's checkpoint is written."""
    run, hold = new_run(tmp_path / "run"), Hold(tmp_path, "run/checkpoint")
    process = Forked(stop_after_two_steps, run.path, hold, hold=hold)
    process.communicate()
    assert process.returncode == 0
    assert numbers(run) == [1, 2]
    max((run.path / "checkpoint").iterdir()).unlink()
    assert same_weights(quick_train(run=run).model.method, uninterrupted.model.method)


def test_a_checkpoint_that_cannot_be_written_ends_the_run_at_a_later_step(tmp_path):
    run, steps = new_run(tmp_path / "run"), []

    class Counting(Silent):
        def step(self, epoch, step):
            steps.append((epoch, step))

    (run.path / "checkpoint").write_text("a file in place of the folder")
    with pytest.raises(FileExistsError):
        quick_train(run=run, progress=Counting(), **ALWAYS)
    assert steps in ([(0, 1)], [(0, 1), (0, 2)])  # noticed at the second step, or before the second checkpoint


def test_a_loss_that_is_not_a_number_names_its_step_and_keeps_the_good_checkpoint(tmp_path):
    run = new_run(tmp_path / "run")
    # The rate is 0.2 · 64 / 256 · 1e30 from the start of epoch 1 on; momentum carries it past float32 in a step.
    with pytest.raises(RunFailed, match=r"NaN (at step \d of|at the start of|in) epoch \d"):
        quick_train(run=run, train__lr=1e30)
    for path in (tmp_path / "run" / "checkpoint").glob("*"):
        learner = build_learner(quick_config(train__lr=1e30), digits(), CPU)
        _, state = load_checkpoint(run, learner, Silent())
        assert all(torch.isfinite(losses).all() for losses in state.losses.values()), path


def test_the_history_has_a_line_an_epoch_and_one_for_the_answer(uninterrupted):
    history = uninterrupted.history
    assert [record["epoch"] for record in history] == [0, 1, 2, 3]
    assert history[0]["losses"].keys() == {"total", "psa"}
    losses = history[1]["losses"]
    assert losses["psl"] > 0
    assert losses["total"] == pytest.approx(losses["psa"] + losses["psl"])
    assert history[0]["measures"]["churn"] is None
    assert 0 <= history[1]["measures"]["churn"] <= 1
    assert history[3]["losses"] == {}
    for record in (line["measures"] for line in history):
        assert {"nmi", "ami", "ari", "accuracy", "uniformity_std", "imbalance_ratio"} <= record.keys()
        assert record["uniformity_reference"] == 1 / 4
        assert record["smallest_cluster"] >= 1


def test_epochs_without_an_estep_keep_their_labels_and_say_nothing_of_them():
    history = quick_train(estep__every=2, psl_start=0, train__warmup=0).history
    assert ["nmi" in record["measures"] for record in history] == [True, False, True, True]


@pytest.mark.full
def test_snapshots_are_kept_of_the_epochs_named(tmp_path):
    run = new_run(tmp_path / "run", keep_epochs=(1,))
    quick_train(run=run, keep_epochs=(1,))
    kept = sorted(path.name for path in (tmp_path / "run" / "snapshots").iterdir())
    assert kept == ["epoch-0001.npy", "epoch-0001.safetensors"]
    assert Run.open(run.path).snapshot(1).shape == (200, 16)
    weights = safetensors.numpy.load_file(run.path / "snapshots" / "epoch-0001.safetensors")
    assert "target.module.backbone.conv1.weight" in weights


@pytest.mark.full
def test_streamed_embeddings_resume_to_the_same_bits(tmp_path):
    run = new_run(tmp_path / "run", estep__embeddings="streamed")
    with pytest.raises(Interrupted):
        quick_train(run=run, stop=stop_after(6), estep__embeddings="streamed")
    resumed = quick_train(run=run, estep__embeddings="streamed")
    whole = quick_train(estep__embeddings="streamed")
    assert same_weights(resumed.model.method, whole.model.method)
    assert without_times(resumed.history) == without_times(whole.history)


@pytest.mark.parametrize(
    "changed",
    [
        {"network__hidden": 48},
        {"train__batch_size": 32},
        {"train__optimiser": "adam"},
        {"train__epochs": 1},
        {"queue_size": 64},
        {"clusters": 5},
        {"method": "byol"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_checkpoint_of_other_settings_is_refused_in_one_line(stopped, changed):
    with pytest.raises(
        InputError, match=r"checkpoint: does not fit config\.yaml \(.*\): put the settings back"
    ) as error:
        quick_train(run=stopped, **changed)
    assert "\n" not in str(error.value)


def test_a_checkpoint_of_another_method_with_the_same_weights_is_refused_by_name(stopped):
    with pytest.raises(InputError, match="method: it was written by 'propos', not by 'propos-no-psa'"):
        quick_train(run=stopped, method="propos-no-psa")


def test_a_file_that_is_no_checkpoint_under_its_right_hash_is_refused(tmp_path):
    run = new_run(tmp_path / "run")
    (run.path / "checkpoint").mkdir()
    content = safetensors.numpy.save({"a": np.ones(2, np.float32)})
    name = f"000001-{hashlib.sha256(content).hexdigest()[:32]}.safetensors"
    (run.path / "checkpoint" / name).write_bytes(content)
    with pytest.raises(InputError, match="its newest file is not a checkpoint"):
        quick_train(run=run)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that was stopped in its second epoch."""
    run = new_run(tmp_path_factory.mktemp("runs") / "stopped")
    with pytest.raises(Interrupted):
        quick_train(run=run, stop=stop_after(6))
    return run
