"""Image files kept in their shape: shorter side 256, one behind the other, those higher than wide on their side."""

import numpy as np
import pytest
from PIL import Image

from helpers.awkward import picture
from propos.common.errors import InputError
from propos.config import Config
from propos.data import cache_side, image_digests, open_folder, open_streamed, pixel_statistics, upright
from propos.data.cache import builder
from propos.data.decoding.decode import kept_shape

SIZES = [(90, 60), (60, 90), (100, 30), (30, 40), (200, 20), (40, 40)]  # width and height
SIDE = 32
KEPT = [(32, 48), (32, 48), (19, 64), (30, 40), (6, 64), (32, 32)]  # rows and columns


@pytest.fixture(autouse=True)
def _caches(tmp_path, monkeypatch):
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "photos").mkdir()
    for number, (width, height) in enumerate(SIZES):
        picture(width, height, 3, seed=number).save(tmp_path / "photos" / f"{number}.png")
    return tmp_path / "photos"


def expected(folder):
    """Return each image resized in its shape by Pillow."""
    made = []
    for number, ((width, height), (rows, columns)) in enumerate(zip(SIZES, KEPT, strict=True)):
        size = (columns, rows) if width >= height else (rows, columns)
        with Image.open(folder / f"{number}.png") as image:
            made.append(np.asarray(image.resize(size, Image.Resampling.BICUBIC)).transpose(2, 0, 1))
    return made


def test_the_shorter_side_is_kept_and_nothing_is_enlarged():
    assert [kept_shape(*size, SIDE) for size in SIZES] == KEPT
    assert kept_shape(500, 375, 256) == kept_shape(375, 500, 256) == (256, 341)
    assert kept_shape(160, 213, 256) == (160, 213)
    assert kept_shape(4000, 1000, 256) == (128, 512)
    assert kept_shape(100_000, 1, 256) == (1, 512)


def test_a_crop_of_half_a_photograph_has_more_pixels_than_half_a_square_of_256():
    rows, columns = kept_shape(500, 375, cache_side(Config().with_settings({"views.keep": "shapes"}).views))
    assert np.sqrt(rows * columns / 2) > 208
    assert np.sqrt(256 * 256 / 2) < 182


@pytest.mark.parametrize("workers", [0, 1])
def test_streamed_images_are_cut_to_their_middle_if_none_is_small(folder, workers):
    with open_streamed(folder, SIDE, workers=workers, shaped=True) as source:
        large, mixed = np.array([0, 1, 5]), np.array([0, 2])
        source.prefetch([large, mixed], 28)
        middles = source.batch(large, 28)
        assert middles.shape == (3, 3, 28, 28)
        for middle, whole, position in zip(middles, source.batch(large), large, strict=True):
            image = upright(source, whole, position)
            top, left = (round((edge - 28) / 2) for edge in image.shape[1:])
            assert np.abs(middle.astype(int) - image[:, top : top + 28, left : left + 28]).max() <= 1
        assert np.array_equal(source.batch(mixed, 28), source.batch(mixed))


@pytest.mark.parametrize("streamed", [False, True])
def test_images_are_in_their_shape_and_upright_ones_lie(folder, streamed):
    source = (open_streamed if streamed else open_folder)(folder, SIDE, workers=0, shaped=True)
    assert source.frames.tolist() == [list(frame) for frame in KEPT]
    assert (source.height, source.width, len(source)) == (32, 64, 6)
    batch = source.batch(np.array([4, 1, 0, 2, 3, 5]))
    assert batch.shape == (6, 3, 32, 64)
    for image, position in zip(batch, [4, 1, 0, 2, 3, 5], strict=True):
        assert np.array_equal(upright(source, image, position), expected(folder)[position])
    assert not batch[0, :, 6:].any()


def test_a_worker_process_decodes_them_alike(folder):
    alone = open_folder(folder, SIDE, workers=0, shaped=True).batch(np.arange(6))
    with open_streamed(folder, SIDE, workers=2, shaped=True) as source:
        assert np.array_equal(source.batch(np.arange(6)), alone)


def test_a_camera_held_upright_is_turned_before_it_is_laid_down(tmp_path):
    image = picture(90, 60, 3, seed=1)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter: 60 wide and 90 high
    (tmp_path / "photos").mkdir()
    image.save(tmp_path / "photos" / "a.png", exif=exif)
    picture(90, 60, 3, seed=2).save(tmp_path / "photos" / "b.png")
    source = open_folder(tmp_path / "photos", SIDE, workers=0, shaped=True)
    turned = image.resize((48, 32), Image.Resampling.BICUBIC).transpose(Image.Transpose.ROTATE_270)
    assert turned.size == (32, 48)
    assert source.aspects.tolist() == pytest.approx([60 / 90, 1.5])
    seen = upright(source, source.batch(np.array([0]))[0], 0)
    assert np.array_equal(seen, np.asarray(turned).transpose(2, 0, 1))


def test_statistics_are_of_what_images_fill(folder):
    mean, std = pixel_statistics(open_folder(folder, SIDE, workers=0, shaped=True))
    pixels = np.concatenate([image.reshape(3, -1) for image in expected(folder)], axis=1) / 255
    np.testing.assert_allclose(mean, pixels.mean(axis=1))
    np.testing.assert_allclose(std, pixels.std(axis=1))


def test_an_image_is_recognised_among_images_of_other_shapes(folder, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "it.png").write_bytes((folder / "1.png").read_bytes())
    (alone,) = image_digests(open_folder(tmp_path / "one", SIDE, workers=0, shaped=True))
    assert list(image_digests(open_folder(folder, SIDE, workers=0, shaped=True))).index(alone) == 1


def test_an_interrupted_build_resumes(folder, monkeypatch):
    whole = open_folder(folder, SIDE, workers=0, shaped=True).batch(np.arange(6))
    monkeypatch.setattr("propos.data.cache.images.JOB", 2)
    monkeypatch.setenv("PROPOS_CACHE", str(folder.parent / "again"))

    def stop(done, total):
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_folder(folder, SIDE, progress=stop, workers=0, shaped=True)
    seen = []
    source = open_folder(folder, SIDE, progress=lambda done, total: seen.append(done), workers=0, shaped=True)
    assert seen[0] == 4
    assert np.array_equal(source.batch(np.arange(6)), whole)


@pytest.mark.parametrize("damage", [[[0, 5]] * 6, [[1, 1]] * 6, [[32, 48]] * 5])
def test_a_cache_whose_frames_are_damaged_is_built_again(folder, damage):
    whole = open_folder(folder, SIDE, workers=0, shaped=True).batch(np.arange(6))
    (frames,) = (folder.parent / "caches").glob(f"*/{builder.FRAMES}")
    np.save(frames, np.array(damage, dtype=np.int32))
    assert np.array_equal(open_folder(folder, SIDE, workers=0, shaped=True).batch(np.arange(6)), whole)


def test_squares_and_shapes_are_two_caches_and_small_images_are_squares(folder, tmp_path):
    open_folder(folder, SIDE, workers=0)
    open_folder(folder, SIDE, workers=0, shaped=True)
    assert len(list((tmp_path / "caches").glob(f"*/{builder.META}"))) == 2
    (tmp_path / "small").mkdir()
    picture(28, 28, 1, seed=0).save(tmp_path / "small" / "a.png")
    source = open_folder(tmp_path / "small", 256, workers=0, shaped=True)
    assert (source.frames, source.height, source.width) == (None, 28, 28)


def test_images_that_keep_their_shape_are_not_rotated():
    with pytest.raises(InputError, match=r"are not rotated: set views\.keep=squares or views\.rotation=0"):
        Config().with_settings({"views.keep": "shapes", "views.rotation": 10.0})
