import json
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from helpers.small import QUICK, digits, save_digits, without_times
from propos import ProPos
from propos.common.errors import Interrupted
from propos.evaluation import nmi
from propos.runner import Output, Request, execute_plan, open_run_images, plan
from propos.runs import Run

IMAGES, LABELS = digits().images[..., 0], digits().labels


def estimator(**parameters):
    return ProPos(10, recipe="digits", settings=QUICK, random_state=0, **parameters)


@pytest.fixture(scope="module")
def fitted():
    return estimator().fit(IMAGES)


def test_construction_only_stores_and_cloning_works():
    settings = {"propos.psl_weight": 1.0}
    parameters = ProPos(n_clusters=7, recipe="digits", settings=settings, random_state=3).get_params()
    assert parameters["settings"] is settings
    copy = clone(ProPos(**parameters))
    assert copy.get_params() == parameters
    assert "labels_" not in vars(copy)


def test_fitting_gives_what_scikit_learn_users_expect(fitted):
    assert fitted.labels_.shape == (200,)
    assert set(fitted.labels_) == set(range(10))
    assert fitted.cluster_centers_.shape == (10, 16)
    assert fitted.embedding_.shape == (200, 16)
    np.testing.assert_allclose(np.linalg.norm(fitted.embedding_, axis=1), 1, atol=1e-5)
    assert [record["epoch"] for record in fitted.history_] == [0, 1, 2, 3]


def test_predicting_the_training_images_gives_their_labels(fitted):
    assert fitted.predict(IMAGES).tolist() == fitted.labels_.tolist()
    np.testing.assert_allclose(fitted.transform(IMAGES), fitted.embedding_, atol=1e-5)


def test_labels_score_but_never_teach(fitted):
    taught = estimator().fit(IMAGES, LABELS)
    assert taught.labels_.tolist() == fitted.labels_.tolist()
    assert "nmi" in taught.history_[-1]["measures"]
    assert "nmi" not in fitted.history_[-1]["measures"]


def test_score_is_nmi_with_labels_and_minus_distance_without(fitted):
    assert fitted.score(IMAGES, LABELS) == pytest.approx(nmi(LABELS, fitted.labels_))
    cosines = (fitted.embedding_ * fitted.cluster_centers_[fitted.labels_]).sum(axis=1)
    assert fitted.score(IMAGES) == pytest.approx(-(1 - cosines).mean(), abs=1e-5)


def test_fit_predict_and_a_random_state_object():
    parameters = {**estimator().get_params(), "random_state": np.random.RandomState(0), "epochs": 1}
    labels = ProPos(**parameters).fit_predict(IMAGES)
    assert labels.shape == (200,)


def test_a_saved_estimator_predicts_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    loaded = ProPos.load(tmp_path / "run")
    assert loaded.predict(IMAGES).tolist() == fitted.labels_.tolist()
    assert loaded.labels_.tolist() == fitted.labels_.tolist()
    assert without_times(loaded.history_) == without_times(fitted.history_)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again/model.safetensors").read_bytes() == (tmp_path / "run/model.safetensors").read_bytes()


def test_a_loaded_estimator_has_the_parameters_it_was_fitted_with(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    loaded = ProPos.load(tmp_path / "run")
    parameters = loaded.get_params()
    assert (parameters["n_clusters"], parameters["recipe"], parameters["random_state"]) == (10, "digits", 0)
    assert parameters["epochs"] == 3
    assert parameters["settings"] == {"views.preset": "digits"} | {
        key: value for key, value in QUICK.items() if key != "train.epochs"
    }
    assert clone(loaded).fit(IMAGES).config_ == fitted.config_


def test_a_saved_estimator_says_where_it_comes_from(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    info = json.loads((tmp_path / "run/run.json").read_text())
    assert {"schema", "propos", "torch", "command", "started", "device", "threads", "machine", "seed"} <= set(info)
    assert info["status"] == "finished"
    assert info["seconds"] > 0
    assert (info["source"]["name"], info["source"]["images"]) == ("array", 200)


def test_lists_and_tensors_serve_as_arrays(fitted):
    assert fitted.predict(list(IMAGES)).tolist() == fitted.labels_.tolist()
    assert fitted.predict(torch.from_numpy(IMAGES.copy())).tolist() == fitted.labels_.tolist()


def test_whole_numbers_of_numpy_serve_and_settings_do_not_overrule_parameters():
    assert len(set(estimator(epochs=1).set_params(n_clusters=np.int64(3)).fit_predict(IMAGES))) == 3
    with pytest.raises(ValueError, match="clusters: these are parameters of ProPos itself"):
        ProPos(3, recipe="digits", settings={"clusters": 5}).fit(IMAGES)


def test_before_fitting_it_says_so(tmp_path):
    with pytest.raises(NotFittedError):
        estimator().predict(IMAGES)
    with pytest.raises(NotFittedError):
        estimator().save(tmp_path / "run")


def test_images_of_another_kind_are_refused(fitted):
    with pytest.raises(ValueError, match="colour images; this run was trained on greyscale"):
        fitted.predict(np.zeros((2, 8, 8, 3), np.uint8))


def test_wrong_input_is_a_value_error():
    with pytest.raises(ValueError, match="shape"):
        estimator().fit(np.zeros((20, 64)))
    with pytest.raises(ValueError, match="labels for 200 images"):
        estimator().fit(IMAGES, LABELS[:5])
    with pytest.raises(ValueError, match="did you mean"):
        ProPos(10, recipe="digits", settings={"propos.psl_wieght": 1}).fit(IMAGES)


def test_without_a_number_or_labels_one_is_suggested():
    model = ProPos(recipe="digits", settings={**QUICK, "suggest.range": (2, 4)}, random_state=0).fit(IMAGES)
    assert model.config_.clusters in (2, 3, 4)
    assert model.cluster_centers_.shape == (model.config_.clusters, 16)


def test_fitting_in_a_run_folder_resumes(fitted, tmp_path):
    settings = {**QUICK, "clusters": 10}
    same = Request(
        source=IMAGES, method="propos", recipe="digits", seed=0, settings=settings, output=Output(command="ProPos.fit")
    )
    asked = iter([False] * 5 + [True])
    with plan(same) as planned, pytest.raises(Interrupted, match="fitting the same images again"):
        execute_plan(planned, tmp_path / "run", stopping=lambda: nullcontext(lambda: next(asked)))
    assert len(list((tmp_path / "run/checkpoint").iterdir())) > 0
    gone_on = estimator(run_folder=tmp_path / "run").fit(IMAGES)
    assert gone_on.info_["status"] == "finished"
    assert np.array_equal(gone_on.embedding_, fitted.embedding_)
    assert without_times(gone_on.history_) == without_times(fitted.history_)


def test_a_finished_run_folder_is_read_and_never_trained_again(tmp_path):
    first = estimator(run_folder=tmp_path / "run").fit(IMAGES)
    again = estimator(run_folder=tmp_path / "run").fit(IMAGES)
    assert again.history_ == first.history_  # its times too
    assert again.info_ == first.info_
    unseeded = ProPos(10, recipe="digits", settings=QUICK, run_folder=tmp_path / "run").fit(IMAGES)
    assert np.array_equal(unseeded.labels_, first.labels_)
    for other, images, said in [
        ({}, IMAGES[::-1], "contains a run of other images"),
        ({"n_clusters": 9}, IMAGES, "contains a run with clusters = 10, not 9"),
        ({"random_state": 5}, IMAGES, "contains a run with seed = 0, not 5"),
    ]:
        with pytest.raises(ValueError, match=said):
            estimator(run_folder=tmp_path / "run").set_params(**other).fit(images)


def test_paths_are_remembered_so_that_the_run_can_be_read_again(tmp_path):
    model = estimator(epochs=1).fit(save_digits(tmp_path / "digits.npz"))
    model.save(tmp_path / "run")
    with open_run_images(Run.open(tmp_path / "run")) as images:
        assert len(images) == 200
