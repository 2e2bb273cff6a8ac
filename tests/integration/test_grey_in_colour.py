"""Grey images that were stored in colour, as scanners and converters leave them."""

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

from helpers.command import command
from helpers.small import digits

ONE_EPOCH = ["-k", 10, "--epochs", 1, "--no-report"]


def written(folder, mode, kind="png"):
    """Write 120 digits of 16×16 in a mode of Pillow's."""
    folder.mkdir()
    for number, pixels in enumerate(digits(120).images[..., 0]):
        grey = Image.fromarray(np.kron(pixels, np.ones((2, 2), np.uint8)) * 15)
        grey.convert(mode).save(folder / f"{number:03d}.{kind}")
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    here = tmp_path_factory.mktemp("stored")
    written(here / "grey", "L")
    return here, written(here / "colour", "RGB")


@pytest.mark.full
def test_they_are_learnt_as_the_same_images_stored_grey(folders, tmp_path, capsys):
    here, colour = folders
    weights = {}
    for name in ("grey", "colour"):
        ran = command(capsys, "run", here / name, *ONE_EPOCH, "--out", tmp_path / name)
        assert ran.code == 0, ran.err
        assert "Recipe: digits, chosen for greyscale images of 16×16" in ran.out
        assert ("the files are RGB but contain no colour" in ran.out) == (name == "colour")
        weights[name] = load_file(tmp_path / name / "model.safetensors")
    for key, values in weights["grey"].items():
        np.testing.assert_array_equal(weights["colour"][key], values)
    new = command(capsys, "predict", tmp_path / "colour", colour, "-o", tmp_path / "new.csv")
    assert new.code == 0, new.err
    more = command(capsys, "run", colour, "--from", tmp_path / "grey", "--epochs", 1, "--out", tmp_path / "more")
    assert more.code == 0, more.err  # a run on grey files is continued with them


@pytest.mark.full
def test_one_image_in_colour_makes_them_colour(tmp_path, capsys):
    folder = written(tmp_path / "mixed", "RGB")
    Image.new("RGB", (16, 16), (200, 120, 120)).save(folder / "red.png")
    seen = command(capsys, "inspect", folder)
    assert seen.code == 0, seen.err
    assert "121 colour" in seen.out


@pytest.mark.full
def test_rounding_of_a_jpeg_is_no_colour(tmp_path, capsys):
    seen = command(capsys, "inspect", written(tmp_path / "jpegs", "RGB", "jpg"))
    assert seen.code == 0, seen.err
    assert "120 greyscale" in seen.out
