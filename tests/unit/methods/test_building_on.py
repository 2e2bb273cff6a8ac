"""Methods that build on a network another has trained: as later stages of one run, or from a finished run."""

import numpy as np
import pytest
import torch

from helpers.command import command
from helpers.methods import TRAINED, each
from helpers.small import CPU, as_flags, digits, quick, quick_config, quick_train, same_weights, save_digits
from helpers.staged import next_epoch, opened
from propos.common.errors import InputError
from propos.methods import find_method, stages_of
from propos.methods.pretext import BuildsOn
from propos.networks import EmaCopy
from propos.runner.recipes import continue_with_method
from propos.runs import Run, RunFolder
from propos.training import Silent, continuation_config, stage_epochs, start_from, train
from propos.training.context import BatchContext
from propos.training.e_step import unassigned
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.state import State, first_state

BUILDING = [name for name in TRAINED if issubclass(find_method(name), BuildsOn)]
BATCH = torch.arange(64)


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """Return a finished run of a method, trained when first asked for."""
    runs, folder = {}, tmp_path_factory.mktemp("runs")

    def of(method, epochs=1):
        if method not in runs:
            run = RunFolder.create(folder / method, {"status": "finished"}, quick_config(method=method))
            quick_train(method=method, train__epochs=epochs).write(run)
            runs[method] = Run.open(run.path)
        return runs[method]

    return of


def begun(run, method, **settings):
    """Return a learner that continues a run by another method, as it begins, and the run's own weights."""
    config, source = continue_with_method(continuation_config(run), method).with_settings(settings), digits()
    start = start_from(run, source, CPU, config)
    learner, state = build_learner(config, source, CPU), State()
    start.apply(learner, state)
    return learner, {name: torch.from_numpy(array) for name, array in run.weights().items()}


def spans(config):
    """Return the names of a configuration's stages and the numbers of their epochs."""
    stages = stages_of(config)
    return {
        stage.name: len(span) for stage, span in zip(stages, stage_epochs(stages, config.train.epochs), strict=True)
    }


def test_the_first_stages_are_the_pretexts():
    assert spans(quick_config(method="dcboost", train__epochs=10)) == {"pretext: propos": 8, "boost": 2}
    several = quick_config(method="dcboost", pretext="tcl", train__epochs=15)
    assert spans(several) == {"pretext: tcl train": 10, "pretext: tcl boost": 2, "boost": 3}


@pytest.mark.parametrize(("pretext", "number"), [("propos", 0), ("tcl", 0), ("tcl", 1)])
def test_a_pretext_trains_as_it_does_alone(pretext, number):
    alone = opened(pretext, number, train__epochs=6)
    below = opened("dcboost", number, pretext=pretext, pretext_share=0.6, train__epochs=10)
    assert alone[0].epochs == below[0].epochs
    for _ in range(2):
        assert m_step(*alone[:2], BATCH, alone[2]) == m_step(*below[:2], BATCH, below[2])
    assert same_weights(alone[0].method, below[0].method.pretext)


def test_from_a_run_of_its_kind_all_weights_are_taken_over(earlier):
    learner, weights = begun(earlier("propos"), "dcboost")
    assert [stage.name for stage in learner.stages] == ["boost"]
    found = {name: tensor for name, tensor in learner.method.state_dict().items() if not name.startswith("progress")}
    assert {name.removeprefix("pretext.") for name in found} >= weights.keys()
    assert all(torch.equal(found[f"pretext.{name}"], weights[name]) for name in weights)


def test_a_predictor_that_a_run_did_not_have_is_new_and_a_target_is_a_copy_of_the_encoder(earlier):
    learner, weights = begun(earlier("simclr"), "dcboost")
    online, target = learner.method.online.state_dict(), learner.method.target.module.state_dict()
    for name in online:
        assert torch.equal(online[name], weights[f"online.{name}"])
        assert torch.equal(target[name], online[name])
    assert not any("predictor" in name for name in weights)
    assert learner.method.predictor[0].weight.abs().max() > 0
    assert learner.stage.first_clusters == 0  # one epoch: nothing to wait for


# A method has 16 heads unless it says otherwise: fewer, and one more.
@pytest.mark.parametrize("heads", [3, 17])
def test_another_number_of_heads_is_drawn_again_on_the_same_network(earlier, heads):
    learner, weights = begun(earlier("temi", epochs=2), "temi", **{"temi.heads": heads})
    method = learner.method
    assert method.memory["shares"].shape == (heads, 10)
    assert int(method.heads.get_buffer("chosen")) == 0
    ours, average = method.heads.each[0][0].weight, method.averages.module.each[0][0].weight
    assert not torch.equal(ours, weights["heads.each.0.0.weight"])
    assert torch.equal(ours, average)
    for name, tensor in method.online.state_dict().items():
        assert torch.equal(tensor, weights[f"pretext.online.{name}"]), name


def test_a_new_predictor_is_trained_before_clusters_are_pulled():
    starts = {pretext: stages_of(_boosting(pretext))[-1].first_clusters for pretext in ("propos", "simclr")}
    assert starts == {"propos": 0, "simclr": 10}


def _boosting(pretext):
    """Return the authors' 800 and 200 epochs."""
    return quick_config(method="dcboost", pretext=pretext, train__epochs=1000)


def test_until_then_the_alignment_alone_counts():
    learner, source, state = opened("dcboost", pretext="simclr", pretext_share=0.2)
    assert list(m_step(learner, source, BATCH, state)) == ["instances"]
    next_epoch(learner, source, state)
    assert list(m_step(learner, source, BATCH, state)) == ["instances", "pull", "push"]


@pytest.mark.parametrize("method", ["dcboost", "conr"])
def test_a_target_that_the_pretext_does_not_have_copies_the_encoder_until_its_own_stage(method):
    config = quick_config(method=method, pretext="simsiam", train__epochs=3)
    source = digits()
    learner = build_learner(config, source, CPU)
    target, online = learner.method.target, learner.method.online
    assert isinstance(target, EmaCopy)
    assert learner.method.embedder is target.module
    state = first_state(learner)
    state.partition = unassigned(200, CPU)
    m_step(learner, source, BATCH, state)
    assert not same_weights(target.module, online)
    learner.method.end_epoch(BatchContext.of(learner, state))
    assert same_weights(target.module, online)


@pytest.mark.parametrize("method", ["scan", "nnm", "spice"])
def test_the_pretexts_target_follows_the_backbone_with_statistics_of_its_own(method):
    learner, source, state = opened(method, number=2 if method == "spice" else 1, pretext="byol")
    target = learner.method.pretext.target.module
    before = {name: value.clone() for name, value in target.state_dict().items()}
    m_step(learner, source, BATCH, state)
    after = target.state_dict()
    moved = {name for name in after if not torch.equal(after[name], before[name])}
    assert any(name.startswith("backbone") and name.endswith("weight") for name in moved)
    assert any(name.startswith("backbone") and name.endswith("running_mean") for name in moved)
    assert not any(name.startswith("projector") for name in moved)


@pytest.mark.parametrize("method", each(BUILDING))
def test_a_finished_run_is_continued_by_every_such_method(earlier, method):
    run = earlier("byol")
    config, source = continue_with_method(continuation_config(run), method).with_settings({"train.epochs": 2}), digits()
    fitted = train(config, source, CPU, Silent(), start=start_from(run, source, CPU, config))
    assert fitted.model.config.sections[method]["pretext"] == "byol"
    assert set(fitted.table.cluster.tolist()) <= set(range(10))
    assert np.isfinite(fitted.embeddings).all()


@pytest.mark.parametrize(
    ("method", "pretext", "words"),
    [
        ("dcboost", "kmeans-pixels", '"kmeans-pixels": trains nothing to build on'),
        ("dcboost", "kmeans-features", '"kmeans-features": trains nothing to build on'),
        ("dcboost", "scan", '"scan": builds on another method itself'),
        ("dcboost", "propso", 'did you mean "propos"'),
        ("scan", "cc", '"cc": trains a cluster head of its own'),
        ("conr", "simclr", '"simclr": has no predictor to predict neighbours with; choose byol or propos'),
    ],
)
def test_what_cannot_be_built_on_is_refused(method, pretext, words):
    with pytest.raises(InputError, match=words):
        quick_config(method=method, pretext=pretext)


def test_a_pretext_with_a_head_needs_the_number_of_clusters():
    source = digits()
    source.labels = None
    with pytest.raises(InputError, match='pretext = "cc" needs the number of clusters from the start'):
        quick_config(source, method="dcboost", pretext="cc")


def test_the_pretexts_own_checks_apply():
    with pytest.raises(InputError, match=r"pcl\.clusters"):
        quick_config(method="dcboost", pretext="pcl", pcl__clusters=(8, 500))


def test_draws_are_even_again_after_a_pretext_that_balances_them():
    learner, _, _ = opened("dcboost", number=0, pretext="deepcluster", train__epochs=10)
    learner.method.pretext.memory["labels"].zero_()
    assert learner.method.sampling_labels() is not None
    learner, _, _ = opened("dcboost", number=1, pretext="deepcluster", train__epochs=10)
    learner.method.pretext.memory["labels"].zero_()
    assert learner.method.sampling_labels() is None


def test_neighbours_are_predicted_by_a_trained_predictor():
    assert spans(quick_config(method="conr", pretext="propos", train__epochs=1000)) == {
        "pretext: propos": 800,
        "refining": 200,
    }


def test_a_run_is_continued_by_the_command(tmp_path, capsys):
    images, flags = save_digits(tmp_path / "digits.npz"), [*as_flags(quick("simclr")), "--no-report", "--quiet"]
    made = command(capsys, "run", images, "--method", "simclr", *flags, "--out", tmp_path / "first")
    assert made.code == 0, made.err
    more = command(capsys, "run", "--from", tmp_path / "first", "--method", "dcboost", "--out", tmp_path / "second")
    assert more.code == 0, more.err
    run = Run.open(tmp_path / "second")
    own = run.config.sections["dcboost"]
    assert (run.config.method, own["pretext"], own["pretext_share"]) == ("dcboost", "simclr", 0.0)
    assert next(record["stage"] for record in run.history) == "boost"
    again = command(capsys, "run", "--from", tmp_path / "second", "--out", tmp_path / "third", "--quiet", "--no-report")
    assert again.code == 0, again.err
    back = command(capsys, "run", "--from", tmp_path / "second", "--method", "byol", "--out", tmp_path / "fourth")
    assert back.code == 2
    assert "network differs" in back.err


@pytest.mark.full
def test_however_short_the_time_every_stage_has_an_epoch(tmp_path, capsys):
    short = {key: value for key, value in quick("scan").items() if key != "train.epochs"}
    images, flags = save_digits(tmp_path / "digits.npz"), [*as_flags(short), "--no-report", "--quiet"]
    made = command(capsys, "run", images, "--method", "scan", *flags, "--time", "0.01s", "--out", tmp_path / "run")
    assert made.code == 0, made.err
    stages = [record["stage"] for record in Run.open(tmp_path / "run").history[:-1]]
    assert stages == ["pretext: simclr", "clustering", "self-labelling"]
