"""Runs that begin without a number of clusters: when it is chosen, and that stopping changes nothing."""

import json

import numpy as np
import pytest

from helpers.quick import quick_cases
from helpers.small import CPU, QUICK, digits, esteps, quick_config, same_weights, without_times
from helpers.together import Recording
from propos.common.errors import InputError, Interrupted
from propos.data.arrays import ArraySource
from propos.runner.recipes import build_recipe
from propos.runs import Run, RunFolder
from propos.training import Silent, prepare, train
from propos.training.choose_k import first_estep


def unlabelled(count=200):
    source = digits(count)
    source.labels = None
    return source


def open_config(**settings):
    """Return settings of a short run that chooses from 2 to 6 clusters after its first epoch."""
    return quick_config(unlabelled(), **{"suggest__range": (2, 6), **settings})


def stop_at(count):
    """Return what asks to stop when it is asked for the `count`-th time."""
    calls = iter(range(1, 10_000))
    return lambda: next(calls) >= count


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    run = RunFolder.create(tmp_path_factory.mktemp("runs") / "whole", {"status": "running"}, open_config())
    return train(open_config(), unlabelled(), CPU, Silent(), run), run


def test_without_labels_the_number_stays_open_until_scattering_starts():
    config = prepare(build_recipe("digits").with_settings({**QUICK, "propos.psl_start": 2}), unlabelled())
    assert config.clusters is None
    assert config.suggest.range == (2, 40)
    assert esteps(config) == [2]
    assert quick_config(digits()).clusters == 10
    assert quick_config(digits()).suggest.range is None
    assert esteps(quick_config(digits(), psl_start=2)) == [0, 2]


def test_a_range_leaves_the_number_open_even_with_labels():
    config = quick_config(digits(), suggest__range=(3, 7))
    assert (config.clusters, config.suggest.range) == (None, (3, 7))


def test_the_range_ends_at_half_the_different_images():
    images = np.random.default_rng(0).integers(256, size=(60, 8, 8, 1), dtype=np.uint8)
    images[20:] = images[:20].repeat(2, axis=0)
    source = ArraySource(images, None, "some", 0.0, 255.0)
    config = build_recipe("digits").with_settings(QUICK)
    assert prepare(config, source).suggest.range == (2, 10)
    assert prepare(config.with_settings({"suggest.range": (4, 9)}), source).suggest.range == (4, 9)
    with pytest.raises(InputError, match="only 20 images differ, too few to choose among 11 or more clusters"):
        prepare(config.with_settings({"suggest.range": (11, 12)}), source)


def test_the_method_says_when_clusters_are_first_needed():
    """PCL's further clusterings at the end of the warm-up, ProPos's at the start of scattering, others never."""
    assert first_estep(open_config(method="pcl")) == 1
    assert first_estep(open_config(method="propos", psl_start=2)) == 2
    for method in ("byol", "simclr", "moco", "propos-no-psl"):
        assert first_estep(open_config(method=method)) == 3
    with pytest.raises(InputError, match=r"needed from the first epoch on: .*sample images uniformly"):
        open_config(method="byol", train__balanced=True)
    assert first_estep(open_config(method="propos", psl_start=5)) == 3  # which no epoch reaches


def test_the_run_folder_and_the_model_hold_the_chosen_number(uninterrupted):
    fitted, run = uninterrupted
    suggestion = json.loads((run.path / "suggestion.json").read_text())
    assert suggestion["range"] == [2, 3, 4, 5, 6]
    assert suggestion["chosen"] in suggestion["range"]
    config = Run.open(run.path).config
    assert config == fitted.model.config
    assert config.clusters == suggestion["chosen"] == len(fitted.model.prototypes)
    assert config.suggest.range == (2, 6)
    assert set(fitted.table.cluster) == set(range(suggestion["chosen"]))


def test_a_run_chooses_by_the_rule_that_its_settings_name(tmp_path):
    config = open_config(suggest__by="autopropos", train__epochs=2)
    run = RunFolder.create(tmp_path / "run", {"status": "running"}, config)
    fitted = train(config, unlabelled(), CPU, Silent(), run)
    suggestion = json.loads((run.path / "suggestion.json").read_text())
    assert list(suggestion["scores"]) == ["silhouette", "divergence"]
    assert suggestion["chosen"] == len(fitted.model.prototypes)


def test_epochs_before_the_choice_are_trained_without_clusters(uninterrupted):
    history = uninterrupted[0].history
    assert [record["measures"].get("n_clusters") for record in history] == [
        None,
        *[uninterrupted[0].model.config.clusters] * 3,
    ]
    assert history[0]["losses"]["psa"] is not None
    assert "psl" not in history[0]["losses"]
    assert history[1]["losses"]["psl"] is not None
    assert history[1]["measures"]["churn"] is None


# Of 200 images there are three steps an epoch, and the opening of it: the fifth to the ninth question are asked while
# 2 to 6 clusters are tried, the tenth when the epoch after the choice has been opened.
@pytest.mark.parametrize("question", quick_cases(5, 9, rest=[3, 7, 10, 12]))
def test_a_run_stopped_before_in_or_after_the_choice_ends_with_the_same_bits(uninterrupted, tmp_path, question):
    whole, whole_run = uninterrupted
    run = RunFolder.create(tmp_path / "run", {"status": "running"}, open_config())
    with pytest.raises(Interrupted):
        train(open_config(), unlabelled(), CPU, Silent(), run, stop_at(question))
    if 5 <= question <= 9:
        # As after a kill between the two files that the choice writes.
        run.write_text("suggestion.json", (whole_run.path / "suggestion.json").read_text())
        assert Run.open(run.path).config.clusters is None
    again = train(Run.open(run.path).config, unlabelled(), CPU, Silent(), run)
    assert same_weights(again.model.method, whole.model.method)
    assert again.embeddings.tobytes() == whole.embeddings.tobytes()
    assert again.table.cluster.tolist() == whole.table.cluster.tolist()
    assert without_times(again.history) == without_times(whole.history)
    for name in ("suggestion.json", "config.yaml"):
        assert (run.path / name).read_bytes() == (whole_run.path / name).read_bytes()


@pytest.mark.full
def test_a_stop_during_the_choice_loses_no_epoch(tmp_path):
    run = RunFolder.create(tmp_path / "run", {"status": "running"}, open_config(psl_start=2))
    with pytest.raises(Interrupted):  # two epochs ask four times each, the choice from then on
        train(open_config(psl_start=2), unlabelled(), CPU, Silent(), run, stop_at(10))
    source = Recording(unlabelled())
    train(Run.open(run.path).config, source, CPU, Silent(), run)
    assert sum(len(asked) == 64 for asked in source.asked) == 3  # the steps of the last epoch alone


def test_the_settings_with_the_chosen_number_repeat_the_run(uninterrupted):
    whole, run = uninterrupted
    again = train(Run.open(run.path).config, unlabelled(), CPU, Silent())
    assert same_weights(again.model.method, whole.model.method)
    assert without_times(again.history) == without_times(whole.history)


@pytest.mark.parametrize("method", quick_cases("moco", "kmeans-pixels", rest=["pcl", "kmeans-random"]))
def test_other_methods_choose_too(method):
    fitted = train(open_config(method=method), unlabelled(), CPU, Silent())
    assert fitted.model.config.clusters in range(2, 7)
    assert len(fitted.model.prototypes) == fitted.model.config.clusters


def test_a_choice_that_no_epoch_reaches_is_made_after_the_last():
    fitted = train(open_config(psl_start=5), unlabelled(), CPU, Silent())
    assert [("n_clusters" in record["measures"]) for record in fitted.history] == [False, False, False, True]


# At the start of epoch 1, or after the last epoch if no epoch needs clusters; then an E-step an epoch and a final one.
@pytest.mark.parametrize(("psl_start", "passes"), [(1, 3), pytest.param(5, 1, marks=pytest.mark.full)])
def test_the_e_step_after_the_choice_does_not_embed_again(psl_start, passes):
    source = Recording(unlabelled())
    train(open_config(psl_start=psl_start), source, CPU, Silent())
    assert sum(len(asked) == 200 for asked in source.asked) == passes


def test_streamed_embeddings_begin_with_the_choice():
    fitted = train(open_config(estep__embeddings="streamed"), unlabelled(), CPU, Silent())
    assert len(fitted.model.prototypes) == fitted.model.config.clusters
