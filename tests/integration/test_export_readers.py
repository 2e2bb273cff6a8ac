"""Exports opened by those they are written for, who know nothing of us: pandas, pycocotools, safetensors."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
import torch.nn.functional as F
from pycocotools.coco import COCO
from safetensors.torch import load_file

from helpers.command import command
from helpers.runs import corrected, folder_run
from helpers.small import finished_run, some_digits

EDITS = [
    {"op": "rename", "cluster": 0, "name": "a, b\"c'"},
    {"op": "merge", "clusters": [1], "into": 0},
    {"op": "junk", "cluster": 2},
    {"op": "confirm", "cluster": 3},
    {"op": "rename", "cluster": 4, "name": "NA"},  # which some readers take for nothing
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return corrected(folder_run(tmp_path_factory.mktemp("readers")).path, *EDITS)


@pytest.fixture(scope="module")
def expected(run):
    """The cluster of each image, worked out from the edits above."""
    found = run.table.cluster.astype(np.int64)
    return np.where(found == 1, 0, np.where(found == 2, -1, found))


def export(capsys, run, form, out):
    result = command(capsys, "export", run.path, "--to", form, "-o", out)
    assert result.code == 0, result.err
    return out


READERS = {
    "csv": lambda path: pandas.read_csv(path, keep_default_na=False, na_values={"name": [""]}),
    "parquet": pandas.read_parquet,
    "json": lambda path: pandas.read_json(path, orient="records", dtype={"image": str}),
}


@pytest.mark.parametrize("form", READERS)
def test_pandas_reads_a_table(run, expected, form, tmp_path, capsys):
    table = READERS[form](export(capsys, run, form, tmp_path / f"labels.{form}"))
    columns = ["id", "image", "cluster", "name", "confidence", "distance", "confirmed", "label"]
    assert sorted(table.columns) == sorted(columns)
    assert table["id"].tolist() == list(range(len(expected)))
    assert table["image"].tolist() == run.table.images
    assert table["cluster"].tolist() == expected.tolist()
    assert table["confirmed"].tolist() == (expected == 3).tolist()
    names = {0: "a, b\"c'", 4: "NA"}
    assert [None if pandas.isna(name) else name for name in table["name"]] == [names.get(each) for each in expected]
    np.testing.assert_allclose(table["confidence"], run.corrected.table.confidence, atol=1e-6)
    assert table["label"].tolist() == [Path(name).parent.name for name in run.table.images]


def test_pandas_reads_what_embedding_atlas_is_given(run, expected, tmp_path, capsys):
    table = pandas.read_parquet(export(capsys, run, "embedding-atlas", tmp_path / "atlas.parquet"))
    np.testing.assert_array_equal(np.stack(table["vector"].tolist()), run.embeddings)
    names = {0: "a, b\"c'", -1: "junk", 4: "NA"}
    assert table["name"].tolist() == [names.get(each, f"cluster {each}") for each in expected]


def test_pycocotools_reads_coco(run, expected, tmp_path, capsys):
    coco = COCO(str(export(capsys, run, "coco", tmp_path / "coco.json")))
    assert sorted(coco.getImgIds()) == list(range(1, len(expected) + 1))
    names = {0: "a, b\"c'", 4: "NA"}
    for number in sorted(set(expected.tolist()) - {-1}):
        (category,) = coco.getCatIds(catNms=[names.get(number, f"cluster {number}")])
        found = {coco.loadImgs(image)[0]["file_name"] for image in coco.getImgIds(catIds=[category])}
        own = np.flatnonzero(expected == number)
        assert found == {str(Path(run.config.source) / run.table.images[row]) for row in own}
        for box in coco.loadAnns(coco.getAnnIds(catIds=[category])):
            image = coco.loadImgs(box["image_id"])[0]
            assert (box["bbox"], box["area"], box["iscrowd"]) == ([0, 0, image["width"], image["height"]], 64, 0)
    assert len(coco.getAnnIds()) == (expected >= 0).sum()


def by_hand(folder, pixels):
    """Return embeddings from the tensors and the settings alone: the small residual network, then its projector."""
    tensors = load_file(folder / "model.safetensors")
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert (settings["network.backbone"], settings["network.stem"]) == ("resnet-small", "small")

    def of(name):
        return tensors[f"target.module.{name}"]

    def norm(x, name):
        parts = (of(f"{name}.{part}") for part in ("running_mean", "running_var", "weight", "bias"))
        return F.batch_norm(x, *parts)

    x = torch.from_numpy(pixels).float() / 255
    x = (x - settings["pixels.mean"][0]) / settings["pixels.std"][0]
    x = F.relu(norm(F.conv2d(x, of("backbone.conv1.weight"), padding=1), "backbone.bn1"))
    for stage, stride in ((1, 1), (2, 2), (3, 2)):
        block, shortcut = f"backbone.layer{stage}.0", x
        if stride == 2:
            shortcut = norm(F.conv2d(x, of(f"{block}.downsample.0.weight"), stride=2), f"{block}.downsample.1")
        x = F.relu(norm(F.conv2d(x, of(f"{block}.conv1.weight"), stride=stride, padding=1), f"{block}.bn1"))
        x = F.relu(norm(F.conv2d(x, of(f"{block}.conv2.weight"), padding=1), f"{block}.bn2") + shortcut)
    x = F.linear(x.mean(dim=(2, 3)), of("projector.0.weight"), of("projector.0.bias"))
    x = F.relu(norm(x, "projector.1"))
    return F.normalize(F.linear(x, of("projector.3.weight"), of("projector.3.bias")), dim=1).numpy()


def test_a_model_is_rebuilt_from_its_tensors_and_settings(tmp_path, capsys):
    """No loader of ours: safetensors, numpy and the equations."""
    source = some_digits(np.arange(150))
    run = corrected(finished_run(tmp_path / "run", source), {"op": "merge", "clusters": [1], "into": 0})
    out = export(capsys, run, "model", tmp_path / "model")
    embeddings = by_hand(out, source.batch(np.arange(150)))
    np.testing.assert_allclose(embeddings, np.load(out / "embeddings.npy"), atol=1e-4)
    nearest = (embeddings @ np.load(out / "prototypes.npy").T).argmax(
        axis=1
    )  # as trained: the edits are a separate file
    table = pandas.read_parquet(out / "clusters.parquet")
    assert (nearest == table["cluster"]).mean() > 0.99  # but for ties
    assert pandas.read_json(out / "edits.jsonl", lines=True)["op"].tolist() == ["merge"]
