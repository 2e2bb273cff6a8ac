"""`propos evaluate` with the network itself: k-NN, the linear probe, positive sampling's neighbours."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score
from sklearn.neighbors import KNeighborsClassifier

from helpers.command import command, run
from helpers.runs import write_edits
from helpers.small import CPU, QUICK, as_flags, digits, save_digits
from propos.clustering import spherical_kmeans
from propos.data import open_source
from propos.methods.seeds import generator
from propos.runs import Run
from propos.training import Model
from propos.training.model import load_weights
from propos.training.probes import BackboneFeatures, crops_only

SETTINGS = [*as_flags({**QUICK, "keep_epochs": (1,)}), "--no-report"]


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
    def evaluated(*arguments, of=folder / "run"):
        result = command(capsys, "evaluate", of, *arguments, "--json")
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
    features = model.features(source)
    assert features.shape == (200, 128)
    assert (features >= 0).all()
    with torch.no_grad():
        projections = model.method.target.module.eval().projector(features)
    probed = BackboneFeatures(model, source, torch.Generator())
    torch.testing.assert_close(torch.cat(list(probed.of_plain_views(torch.arange(200)))), features)
    torch.testing.assert_close(probed.plain_view_table(torch.arange(50, 150)), features[50:150])
    assert probed.width == 128
    embeddings = np.load(folder / "run" / "embeddings.npy")
    unit = projections / projections.norm(dim=1, keepdim=True)
    np.testing.assert_allclose(unit, embeddings, atol=1e-4)


def test_the_paper_probe_sees_crops_of_the_image_and_nothing_else_of_the_views(folder):
    """Without cropping and mirroring a view is the image itself, so its features are those of the plain view."""
    model = Model.from_run(Run.open(folder / "run"), CPU)
    crops = crops_only(model.config.views)
    assert (crops.crop_scale, crops.flip, crops.size) == ((0.6, 1.0), 0.0, 8)
    assert (crops.rotation, crops.jitter, crops.grey, crops.brightness) == (0.0, 0.0, 0.0, 0.0)
    places = torch.tensor([7, 3, 11])
    probed = BackboneFeatures(model, digits(200), torch.Generator().manual_seed(0))
    first, second = probed.of_crops(places), probed.of_crops(places)
    assert first.shape == (3, 128)
    assert not torch.equal(first, second)
    whole = model.config.with_settings({"views.crop_scale": (1.0, 1.0), "views.crop_ratio": (1.0, 1.0)})
    uncropped = BackboneFeatures(replace(model, config=whole), digits(200), torch.Generator())
    torch.testing.assert_close(uncropped.of_crops(places), model.features(digits(200))[places])


@pytest.mark.full
def test_the_paper_probe_learns_from_crops_and_tells_it(folder, capsys):
    result = command(capsys, "evaluate", folder / "run", "--linear", "paper", "--test", folder / "test.npz")
    assert result.code == 0, result.err
    line = next(line for line in result.out.splitlines() if line.startswith("linear_accuracy"))
    assert "on 100 test images; trained on random crops, as in the paper, of 200" in line
    assert float(line.split()[1]) > 0.5


def test_the_linear_probe_is_about_logistic_regression_and_the_same_every_time(folder, evaluated):
    found = evaluated("--linear", "fast", "--test", folder / "test.npz")
    assert found == evaluated("--linear", "fast", "--test", folder / "test.npz")
    assert (found["linear_train_images"], found["linear_test_images"]) == (200, 100)
    model, test = Model.from_run(Run.open(folder / "run"), CPU), open_source(folder / "test.npz")
    theirs = LogisticRegression(max_iter=5000).fit(model.features(digits(200)), digits(200).labels)
    assert found["linear_accuracy"] == pytest.approx(theirs.score(model.features(test), test.labels), abs=0.12)


def test_a_fifth_is_held_out_for_the_probe_and_that_is_said(folder, evaluated, capsys):
    found = evaluated("--linear", "fast")
    assert (found["linear_train_images"], found["linear_test_images"]) == (160, 40)
    assert found["linear_accuracy"] > 0.3
    said = command(capsys, "evaluate", folder / "run", "--linear", "fast", "--optimiser", "lars").out
    assert "on 40 images held out at random" in said
    assert "trained on fixed features, without the paper's crops, of the other 160" in said


def test_sampled_neighbours_keep_their_class_until_the_noise_is_large(folder, evaluated):
    kept, lost = (evaluated("--psa-preservation", "--sigma", sigma) for sigma in ("0", "100"))
    assert (kept["psa_preservation"], kept["psa_preservation_sd"]) == (1.0, 0.0)
    assert lost["psa_preservation"] < 0.5
    assert lost["psa_preservation_sd"] > 0
    # The classes of the test images are predicted, so they need no labels; σ is the run's.
    found = evaluated("--psa-preservation", "--test", folder / "unlabelled.npy")
    assert (found["psa_sigma"], found["psa_images"], found["psa_voters"]) == (0.001, 100, 200)
    assert found["psa_preservation"] > 0.9


def test_sampled_neighbours_are_about_the_online_projection(folder, evaluated):
    """The rate by hand: scikit-learn's k-NN among the online projections of the others, before and after the noise."""
    model, source = Model.from_run(Run.open(folder / "run"), CPU), digits(300)
    test = open_source(folder / "test.npz")
    with torch.no_grad():
        pixels = (torch.from_numpy(source.batch(np.arange(300))) / 255 - model.config.pixels.mean[0]) / (
            model.config.pixels.std[0]
        )
        projections = model.method.online.eval()(pixels).numpy()
    knn = scikit(20).fit(projections[:200], source.labels[:200])
    before, rates = knn.predict(projections[200:]), []
    draws = generator(model.config.seed, "psa preservation")
    for _ in range(10):
        noise = torch.randn((100, 16), generator=draws).numpy()
        rates.append(np.mean(knn.predict(projections[200:] + 0.5 * noise) == before))
    found = evaluated("--psa-preservation", "--sigma", "0.5", "--test", folder / "test.npz")
    assert found["psa_preservation"] == pytest.approx(np.mean(rates), abs=0.005)
    assert len(test) == found["psa_images"]


def test_images_that_are_tested_on_do_not_vote(folder, evaluated, capsys):
    source = digits(220)
    np.savez(folder / "overlap.npz", images=source.images[150:, ..., 0], labels=source.labels[150:])
    found = evaluated("--psa-preservation", "--test", folder / "overlap.npz")
    assert (found["psa_images"], found["psa_voters"]) == (70, 150)
    result = command(capsys, "evaluate", folder / "run", "--psa-preservation", "--test", folder / "overlap.npz")
    assert "70 test images, 50 of them also among the run's, where they are left out" in result.out


@pytest.mark.full
def test_images_that_are_tested_on_are_no_neighbours_and_are_not_learnt_from(folder, evaluated, capsys):
    source = digits(220)
    np.savez(folder / "shared.npz", images=source.images[150:, ..., 0], labels=source.labels[150:])
    arguments = ["--knn", "--neighbours", "1", "--linear", "fast", "--test", folder / "shared.npz"]
    found = evaluated(*arguments)
    opened, test = Run.open(folder / "run"), open_source(folder / "shared.npz")
    queries = Model.from_run(opened, CPU).embeddings(test)
    others = scikit(1).fit(opened.embeddings[:150], opened.table.label[:150])
    assert found["knn_accuracy"] == pytest.approx(others.score(queries, test.labels))
    assert found["linear_train_images"] == 150
    said = command(capsys, "evaluate", folder / "run", *arguments).out
    assert said.count("70 test images, 50 of them also among the run's, where they are left out") == 2


def test_missing_images_of_the_run_are_reported_because_test_images_cannot_be_excluded(folder, tmp_path, capsys):
    shutil.copytree(folder / "run", tmp_path / "run")
    config = tmp_path / "run" / "config.yaml"
    config.write_text(config.read_text().replace(str(folder / "images.npz"), str(tmp_path / "gone.npz")))
    result = command(capsys, "evaluate", tmp_path / "run", "--knn", "--test", folder / "test.npz", "--json")
    assert result.code == 0, result.err
    assert "cannot check whether test images are among the run's" in result.err
    assert json.loads(result.out)["knn_images"] == 100


def test_one_cluster_has_no_agreement_with_labels_but_an_accuracy(folder, evaluated, tmp_path, capsys):
    merged = shutil.copytree(folder / "run", tmp_path / "merged")
    ids = Run.open(merged).prototypes.ids.tolist()
    write_edits(merged / "edits.jsonl", {"op": "merge", "clusters": ids[1:], "into": ids[0]})
    found = evaluated(of=merged)
    assert [found[name] for name in ("nmi", "ami", "ari", "silhouette")] == [None] * 4
    assert found["accuracy"] == np.bincount(Run.open(merged).table.label).max() / 200
    lines = command(capsys, "evaluate", merged).out.splitlines()
    assert [line.split()[0] for line in lines if "one cluster has none" in line] == ["nmi", "ami", "ari", "silhouette"]


def test_another_number_of_clusters_is_found_in_the_runs_embeddings(folder, evaluated):
    """Twenty clusters are scored and counted; test images take the nearest of the twenty new prototypes."""
    found = evaluated("-k", "20", "--test", folder / "test.npz")
    opened, test = Run.open(folder / "run"), open_source(folder / "test.npz")
    points = torch.from_numpy(opened.embeddings)
    draws = generator(opened.config.seed, "evaluation", 20)
    clustering = spherical_kmeans(points, 20, opened.config.estep.restarts, draws)
    assert found["n_clusters"] == 20
    assert found["nmi"] == pytest.approx(normalized_mutual_info_score(opened.table.label, clustering.labels))
    queries = Model.from_run(opened, CPU).embeddings(test)
    nearest = (queries @ clustering.centres.T).argmax(dim=1)
    assert found["test_nmi"] == pytest.approx(normalized_mutual_info_score(test.labels, nearest))
    sizes = np.bincount(clustering.labels)
    assert found["imbalance_ratio"] == pytest.approx(sizes.min() / sizes.max())


def test_a_snapshot_is_evaluated_as_the_networks_then_were(folder, evaluated):
    found = evaluated("--snapshot", "1", "--knn", "--psa-preservation", "--test", folder / "test.npz")
    opened, test = Run.open(folder / "run"), open_source(folder / "test.npz")
    weights = safetensors.numpy.load_file(folder / "run" / "snapshots" / "epoch-0001.safetensors")
    model = Model.from_run(opened, CPU)
    load_weights(model.method, {name: torch.from_numpy(array) for name, array in weights.items()})
    bank = model.embeddings(digits(200)).numpy()
    np.testing.assert_allclose(bank, np.load(folder / "run" / "snapshots" / "epoch-0001.npy"), atol=1e-5)
    knn = scikit(20).fit(bank, opened.table.label)
    assert found["knn_accuracy"] == pytest.approx(knn.score(model.embeddings(test), test.labels))
    assert found["n_clusters"] == 10
    assert found != evaluated("--knn", "--psa-preservation", "--test", folder / "test.npz")


@pytest.mark.full
def test_the_probe_and_other_clusters_of_a_snapshot_are_its_networks(folder, evaluated):
    """A run whose last weights are the snapshot's has the same probe, and the same clusters of its embeddings."""
    past = folder / "past"
    shutil.copytree(folder / "run", past)
    shutil.copy(past / "snapshots" / "epoch-0001.safetensors", past / "model.safetensors")
    shutil.copy(past / "snapshots" / "epoch-0001.npy", past / "embeddings.npy")
    arguments = ["--linear", "fast", "-k", "4", "--test", folder / "test.npz"]
    found, ended = evaluated(*arguments, "--snapshot", "1"), evaluated(*arguments)
    expected = evaluated(*arguments, of=past)
    assert found == expected
    assert found["n_clusters"] == 4
    assert found["nmi"] != ended["nmi"]


def test_labels_may_be_words_and_a_line_is_printed_for_each_measure(folder, capsys, evaluated):
    arguments = ["--knn", "--linear", "fast", "--psa-preservation", "--labels", folder / "names.csv"]
    result = command(capsys, "evaluate", folder / "run", *arguments, "--test", folder / "named.npz")
    assert result.code == 0, result.err
    lines = {line.split()[0]: line for line in result.out.splitlines()}
    numbers = evaluated("--knn", "--test", folder / "test.npz")
    assert f"{numbers['knn_accuracy']:.4f}  (20 neighbours, 100 test images)" in lines["knn_accuracy"]
    assert "trained on fixed features" in lines["linear_accuracy"]
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
        (["--linear", "fast", "--test", "nowhere.npz"], "no such file"),
        (["-k", "201"], "-k 201: the run has 200 images: choose 2 to 200"),
        (["-k", "1"], "-k 1: the run has 200 images: choose 2 to 200"),
        (["--snapshot", "2"], "kept no weights after epoch 2 (keep_epochs: 1)"),
        (["--psa-preservation", "--test", "images.npz"], "contains only the run's own images"),
        (["--psa-preservation", "--sigma", "-1"], "choose 0 or more"),
        (["--linear", "fast", "--labels", "same.csv"], "same label"),
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
    arguments = ["run", tmp_path / "images.npy", "-k", "3", *SETTINGS, "--set", "train.epochs=2"]
    assert command(capsys, *arguments, "--out", tmp_path / "run", "--quiet").code == 0
    assert "give --labels FILE" in command(capsys, "evaluate", tmp_path / "run", "--knn").err
    (tmp_path / "labels.csv").write_text("image,label\n" + "".join(f"{i},{i % 2}\n" for i in range(100)))
    np.save(tmp_path / "images.npy", digits(101).images[1:, ..., 0])
    result = command(capsys, "evaluate", tmp_path / "run", "--linear", "fast", "--labels", tmp_path / "labels.csv")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "not those the run started with" in result.err
