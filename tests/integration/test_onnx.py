"""A run's model as ONNX, run by onnxruntime alone and compared with what propos says of the same images."""

import numpy as np
import onnxruntime
import pytest
from PIL import Image

from helpers.command import command
from helpers.methods import each
from helpers.pretrained import pictures, random_weights
from helpers.runs import write_edits
from helpers.small import as_flags, quick, save_digits
from propos import ProPos
from propos.data.arrays import ArraySource
from propos.training import Model


def answers(path, images):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    assert (given.name, given.type, given.shape[1:]) == ("images", "tensor(uint8)", [*images.shape[1:]])
    assert isinstance(given.shape[0], str)  # any number of images
    assert [each.name for each in session.get_outputs()] == ["cluster", "confidence", "embedding"]
    return session.run(None, {"images": images})


def exported(capsys, run, out):
    result = command(capsys, "export", run, "--to", "onnx", "-o", out)
    assert result.code == 0, result.err
    assert result.err == ""
    return result.out


@pytest.mark.parametrize("method", each(["propos", "cc-psl", "temi", "turtle", "iic", "dec", "mice", "dccm"], quick=[]))
def test_prototypes_and_heads_answer_as_the_run_does(method, tmp_path, capsys):
    images = save_digits(tmp_path / "digits.npz", 120)
    heads = {"heads": 2} if method in {"temi", "iic"} else {}
    flags = [*as_flags(quick(method, train__epochs=2, **heads)), "--no-report", "--quiet"]
    made = command(capsys, "run", images, "-k", 6, "--method", method, *flags, "--out", tmp_path / "run")
    assert made.code == 0, made.err
    if method == "propos":  # corrected clusters, whose ids have gaps
        edits = [{"op": "merge", "clusters": [1], "into": 0}, {"op": "rename", "cluster": 5, "name": "five"}]
        write_edits(tmp_path / "run" / "edits.jsonl", *edits)
    said = exported(capsys, tmp_path / "run", tmp_path / "model.onnx")
    assert "on 64 of the run's images" in said
    from propos.runs import Run

    run = Run.open(tmp_path / "run")
    size = run.config.views.size
    pixels = np.random.default_rng(0).integers(0, 256, (9, size, size, 1)).astype(np.uint8)
    source = ArraySource(pixels, None, "noise", 0.0, 255.0)
    import torch

    model = Model.from_run(run, torch.device("cpu"))
    expected, embeddings = model.predict(source), model.embeddings(source).numpy()
    cluster, confidence, embedding = answers(tmp_path / "model.onnx", np.repeat(pixels, 3, axis=3))
    np.testing.assert_array_equal(cluster, expected.cluster)
    np.testing.assert_allclose(confidence, expected.confidence, atol=1e-4)
    np.testing.assert_allclose(embedding, embeddings, atol=1e-4)
    assert method != "propos" or 1 not in run.corrected.prototypes.ids


@pytest.mark.full
def test_colours_are_made_grey_as_pillow_does(tmp_path, capsys):
    rng = np.random.default_rng(0)
    grey = rng.integers(0, 256, (60, 8, 8)).astype(np.uint8)
    ProPos(3, method="kmeans-pixels", random_state=0).fit(grey).save(tmp_path / "run")
    said = exported(capsys, tmp_path / "run", tmp_path / "model.onnx")
    assert "images of noise, because the run's cannot be read" in said
    size = int(said.split("×")[1].split(":")[0])
    colours = rng.integers(0, 256, (7, size, size, 3)).astype(np.uint8)
    as_pillow = np.stack([np.asarray(Image.fromarray(each).convert("L")) for each in colours])
    _, _, of_colours = answers(tmp_path / "model.onnx", colours)
    _, _, of_grey = answers(tmp_path / "model.onnx", np.repeat(as_pillow[..., None], 3, axis=3))
    np.testing.assert_allclose(of_colours, of_grey, atol=1e-6)


@pytest.mark.full
def test_a_pretrained_start_is_part_of_the_file(tmp_path, capsys):
    photos = pictures(tmp_path / "photos", width=256, height=256)
    weights = random_weights(tmp_path / "weights.pth")
    options = ["--start", "pretrained", "--weights", weights, "--no-report", "--quiet", "--out", tmp_path / "run"]
    made = command(capsys, "run", photos, "-k", 3, *options)
    assert made.code == 0, made.err
    assert "of the run's images" in exported(capsys, tmp_path / "run", tmp_path / "model.onnx")
    from propos.runs import Run

    run = Run.open(tmp_path / "run")
    # The shorter side is 256 already: what the network sees is the middle of 224.
    whole = np.stack([np.asarray(Image.open(photos / name)) for name in run.table.images[:6]])
    cluster, confidence, embedding = answers(tmp_path / "model.onnx", np.ascontiguousarray(whole[:, 16:240, 16:240]))
    np.testing.assert_array_equal(cluster, run.table.cluster[:6])
    np.testing.assert_allclose(confidence, run.table.confidence[:6], atol=1e-3)
    np.testing.assert_allclose(embedding, run.embeddings[:6], atol=1e-3)


def test_the_name_has_to_end_in_onnx(tmp_path, capsys):
    grey = np.random.default_rng(0).integers(0, 256, (20, 8, 8)).astype(np.uint8)
    ProPos(2, method="kmeans-pixels", random_state=0).fit(grey).save(tmp_path / "run")
    result = command(capsys, "export", tmp_path / "run", "--to", "onnx", "-o", tmp_path / "model.bin")
    assert (result.code, result.err) == (2, f"propos: {tmp_path / 'model.bin'}: name the file *.onnx\n")
