"""Run folders made in a moment: digits as image files, clustered by scikit-learn, with a history written by hand."""

import json
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from propos.config import Config, PixelSettings
from propos.data import cache_side, find_configured, fingerprint
from propos.runs import ImageTable, Run, RunFolder

EVIL = "<img src=x onerror=alert(1)>.png"
K = 10


def digit_files(root, count=200):
    """Write digits as PNG files into folders named by their labels: one evilly named, one twice, one unreadable."""
    digits = load_digits()
    for number in range(count):
        folder = root / f"digit {digits.target[number]}"
        folder.mkdir(parents=True, exist_ok=True)
        name = EVIL if number == 0 else f"{number:04d}.png"
        Image.fromarray((digits.images[number] * 15.9).astype(np.uint8)).save(folder / name)
    first = root / f"digit {digits.target[1]}" / "0001.png"
    (first.parent / "copy of 0001.png").write_bytes(first.read_bytes())
    return root


def write_edits(path, *edits):
    """Write corrections as a run's log of them."""
    lines = (json.dumps({"v": 1, "id": f"e{number}", **edit}) + "\n" for number, edit in enumerate(edits))
    path.write_text("".join(lines))
    return path


def corrected(folder, *edits):
    """Correct a run."""
    write_edits(folder / "edits.jsonl", *edits)
    return Run.open(folder)


def make_run(path, source, names, pixels, labels=None, clusters=K):
    """Write a finished run whose embeddings are the pixels themselves, made unit vectors."""
    flat = pixels.reshape(len(pixels), -1).astype(np.float32)
    embeddings = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    found = KMeans(clusters, n_init=1, random_state=0).fit_predict(embeddings).astype(np.int32)
    prototypes = np.stack([embeddings[found == number].mean(axis=0) for number in range(clusters)])
    prototypes /= np.linalg.norm(prototypes, axis=1, keepdims=True)
    cosine = embeddings @ prototypes.T
    weight = np.exp(cosine / 0.1)
    own = np.arange(len(found)), found
    config = complete(source=str(source), labels=None if labels is None else "folders", clusters=clusters)
    info = {
        "status": "finished",
        "command": "propos run",
        "seconds": 12.0,
        "device": "cpu",
        "source": {"name": "digits", "streamed": False, "fingerprint": known_by(config)},
    }
    run = RunFolder.create(path, info, config)
    confidence, distance = (weight / weight.sum(axis=1, keepdims=True))[own], 1 - cosine[own]
    run.write_images(ImageTable(list(names), found, confidence.astype(np.float32), distance.astype(np.float32), labels))
    run.write_array("embeddings.npy", embeddings)
    run.write_array("prototypes.npy", prototypes)
    run.write_history(history())
    return Run.open(path)


def complete(**settings):
    """Return settings with what every run folder's say: what grey pixels mean."""
    return Config(**settings, pixels=PixelSettings(mean=(0.3,), std=(0.4,)))


def known_by(config):
    """Return what the images are known by, if they are there."""
    there = Path(config.source).exists()
    return fingerprint(find_configured(config).open(cache_side(config.views))) if there else "not known"


def history(epochs=5):
    """Return an epoch's line for each epoch and the closing one."""
    lines = [
        {"epoch": e, "losses": {"total": 1 / (e + 1), "psa": 1 / (e + 1), "psl": None if e < 2 else 0.5}, "rates": {},
         "measures": {"n_clusters": 10, "uniformity_std": 0.05, "uniformity_reference": 0.1, "imbalance_ratio": 0.5,
                      "smallest_cluster": 10, "largest_cluster": 20,
                      "churn": None if e == 0 else 0.1, "nmi": 0.5, "ami": 0.5, "ari": 0.4,
                      "accuracy": 0.6}, "seconds": {}}
        for e in range(epochs)
    ]  # fmt: skip
    lines[1]["warnings"] = [{"code": "imbalance", "text": "most images are in one cluster"}]
    measures = {**lines[-1]["measures"], "nmi": 0.8, "ami": 0.8, "ari": 0.7, "accuracy": 0.9}
    return [*lines, {"epoch": epochs, "losses": {}, "rates": {}, "measures": measures, "seconds": {}}]


SUGGESTION = {
    "range": [8, 9, 10, 11, 12],
    "scores": {"silhouette": [0.37, 0.41, 0.46, 0.46, 0.45], "stability": [0.6, 0.9, 0.97, 0.91, 0.92]},
    "chosen": 10,
    "why": "10 clusters suggested, of 8 to 12.\nNext best: 11 and 9.",
}


def folder_run(root):
    """Write digits as files and a run of them, with a file the run could not read."""
    from propos.data import folder_labels, open_folder

    source = open_folder(digit_files(root / "photos"), 8)
    (root / "photos" / "notes.txt").write_text("no image")
    images = source.batch(np.arange(len(source)))
    labels = np.array(folder_labels(source.image_names()).classes)
    run = make_run(root / "run", root / "photos", source.image_names(), images, labels)
    folder = RunFolder(run.path)
    folder.write_skipped([("notes.txt", "not an image")])
    folder.write_suggestion(SUGGESTION, run.config)
    return Run.open(run.path)
