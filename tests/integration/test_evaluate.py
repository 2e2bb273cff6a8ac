"""`propos evaluate` with the network itself: k-NN, the linear probe, positive sampling's neighbours."""

import json

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score
from sklearn.neighbors import KNeighborsClassifier

from helpers.command import command, run
from helpers.small import CPU, QUICK, as_flags, digits, save_digits
from propos.data import open_source
from propos.runs import Run
from propos.training import Model

SETTINGS = [*as_flags(QUICK), "--no-report"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with images, more images to test on, and a run of the former."""
    folder = tmp_path_factory.mktemp("evaluate")
    source = digits(300)
    save_digits(folder / "images.npz", 200)
    names = np.array([f"class {label}" for label in source.labels])
    np.savez(folder / "test.npz", images=source.images[200:, ..., 0], labels=source.labels[200:])
    np.savez(folder / "named.npz", images=source.images[200:, ..., 0], labels=names[200:])
    np.save(folder / "unlabelled.npy", source.images[200:, ..., 0])
    rows = "".join(f"{image},{name}\n" for image, name in enumerate(names[:200]))
    (folder / "names.csv").write_text("image,label\n" + rows)
    result = run("run", folder / "images.npz", *SETTINGS, "--out", folder / "run", "--quiet")
    assert result.code == 0, result.err
    return folder


@pytest.fixture
def evaluated(folder, capsys):
    def evaluated(*arguments):
        result = command(capsys, "evaluate", folder / "run", *arguments, "--json")
        assert result.code == 0, result.err
        return json.loads(result.out)

    return evaluated


def scikit(neighbours):
    return KNeighborsClassifier(
        neighbours, metric="cosine", algorithm="brute", weights=lambda distances: np.exp((1 - distances) / 0.07)
    )


def test_knn_on_test_images_is_scikit_learns_on_their_embeddings(folder, evaluated):
    found = evaluated("--knn", "--test", folder / "test.npz", "--neighbours", "7")
    opened = Run.open(folder / "run")
    test = open_source(folder / "test.npz")
    queries = Model.from_run(opened, CPU).embeddings(test)
    knn = scikit(7).fit(opened.embeddings, opened.table.label)
    assert found["knn_accuracy"] == pytest.approx(knn.score(queries, test.labels))
    assert (found["knn_neighbours"], found["knn_images"]) == (7, 100)


def test_test_images_take_their_nearest_prototype_and_are_scored(folder, evaluated):
    found = evaluated("--test", folder / "test.npz")
    opened, test = Run.open(folder / "run"), open_source(folder / "test.npz")
    queries = Model.from_run(opened, CPU).embeddings(test).numpy()
    nearest = (queries @ opened.prototypes.vectors.T).argmax(axis=1)
    assert found["test_nmi"] == pytest.approx(normalized_mutual_info_score(test.labels, nearest))
    assert found["test_images"] == 100
    assert "knn_accuracy" not in found


def test_knn_without_test_images_leaves_each_out(folder, evaluated):
    found = evaluated("--knn")
    embeddings, labels = np.load(folder / "run" / "embeddings.npy"), digits(200).labels
    right = []
    for place in range(200):
        rest = np.arange(200) != place
        knn = scikit(20).fit(embeddings[rest], labels[rest])
        right.append(knn.predict(embeddings[place : place + 1])[0] == labels[place])
    assert found["knn_accuracy"] == pytest.approx(np.mean(right))
    assert (found["knn_neighbours"], found["knn_images"]) == (20, 200)


def test_the_probe_sees_backbone_features_of_the_embedding_network(folder):
    model = Model.from_run(Run.open(folder / "run"), CPU)
    source = digits(200)
    features, projections = model.features(source), model.projections(source)
    assert features.shape == (200, 128)
    assert (features >= 0).all()
    with torch.no_grad():
        torch.testing.assert_close(model.network.target.eval().projector(features), projections)
    embeddings = np.load(folder / "run" / "embeddings.npy")
    unit = projections / projections.norm(dim=1, keepdim=True)
    np.testing.assert_allclose(unit, embeddings, atol=1e-4)


def test_the_linear_probe_is_about_logistic_regression_and_the_same_every_time(folder, evaluated):
    found = evaluated("--linear", "--test", folder / "test.npz")
    assert found == evaluated("--linear", "--test", folder / "test.npz")
    assert (found["linear_train_images"], found["linear_test_images"]) == (200, 100)
    model, test = Model.from_run(Run.open(folder / "run"), CPU), open_source(folder / "test.npz")
    theirs = LogisticRegression(max_iter=5000).fit(model.features(digits(200)), digits(200).labels)
    assert found["linear_accuracy"] == pytest.approx(theirs.score(model.features(test), test.labels), abs=0.12)


def test_a_fifth_is_held_out_for_the_probe_and_that_is_said(folder, evaluated, capsys):
    found = evaluated("--linear")
    assert (found["linear_train_images"], found["linear_test_images"]) == (160, 40)
    assert found["linear_accuracy"] > 0.3
    said = command(capsys, "evaluate", folder / "run", "--linear", "--optimiser", "lars").out
    assert "on 40 images held out at random" in said


def test_sampled_neighbours_keep_their_class_until_the_noise_is_large(folder, evaluated):
    kept, lost = (evaluated("--psa-preservation", "--sigma", sigma) for sigma in ("0", "100"))
    assert (kept["psa_preservation"], kept["psa_preservation_sd"]) == (1.0, 0.0)
    assert lost["psa_preservation"] < 0.5
    assert lost["psa_preservation_sd"] > 0
    # The classes of the test images are predicted, so they need no labels; σ is the run's.
    found = evaluated("--psa-preservation", "--test", folder / "unlabelled.npy")
    assert (found["psa_sigma"], found["psa_images"]) == (0.001, 100)
    assert found["psa_preservation"] > 0.9


def test_labels_may_be_words_and_a_line_is_printed_for_each_measure(folder, capsys, evaluated):
    arguments = ["--knn", "--linear", "--psa-preservation", "--labels", folder / "names.csv"]
    result = command(capsys, "evaluate", folder / "run", *arguments, "--test", folder / "named.npz")
    assert result.code == 0, result.err
    lines = {line.split()[0]: line for line in result.out.splitlines()}
    numbers = evaluated("--knn", "--test", folder / "test.npz")
    assert f"{numbers['knn_accuracy']:.4f}  (20 neighbours, 100 test images)" in lines["knn_accuracy"]
    assert "trained on the features of 200" in lines["linear_accuracy"]
    assert "±" in lines["psa_preservation"]
    assert "silhouette" in lines


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--test", "unlabelled.npy"], "--test unlabelled.npy: has no labels"),
        (["--knn", "--neighbours", "200"], "choose 1 to 199"),
        (["--knn", "--neighbours", "0"], "choose 1 to 199"),
        (["--knn", "--test", "unlabelled.npy"], "has no labels"),
        (["--knn", "--test", "named.npz"], "none of the run's"),
        (["--linear", "--test", "nowhere.npz"], "no such file"),
        (["--psa-preservation", "--sigma", "-1"], "choose 0 or more"),
        (["--linear", "--labels", "same.csv"], "same label"),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_line(folder, capsys, monkeypatch, arguments, said):
    monkeypatch.chdir(folder)
    (folder / "same.csv").write_text("image,label\n" + "".join(f"{image},it\n" for image in range(200)))
    result = command(capsys, "evaluate", "run", *arguments)
    assert result.code == 2
    assert said in result.err
    assert result.err.count("\n") == 1


def test_a_run_without_labels_asks_for_them_and_one_whose_images_changed_says_so(folder, tmp_path, capsys):
    np.save(tmp_path / "images.npy", digits(100).images[..., 0])
    arguments = ["run", tmp_path / "images.npy", "-k", "3", *SETTINGS, "--set", "train.epochs=1"]
    assert command(capsys, *arguments, "--out", tmp_path / "run", "--quiet").code == 0
    assert "give --labels FILE" in command(capsys, "evaluate", tmp_path / "run", "--knn").err
    (tmp_path / "labels.csv").write_text("image,label\n" + "".join(f"{i},{i % 2}\n" for i in range(100)))
    np.save(tmp_path / "images.npy", digits(101).images[1:, ..., 0])
    result = command(capsys, "evaluate", tmp_path / "run", "--linear", "--labels", tmp_path / "labels.csv")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "no longer those" in result.err
