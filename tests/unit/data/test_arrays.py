import io

import numpy as np
import pytest

from propos.common.errors import InputError
from propos.data import distinct_images, fingerprint, from_array, open_source, pixel_statistics
from propos.runs import ImageTable, write_table


def grey(count=3, side=4):
    return np.arange(count * side * side, dtype=np.uint8).reshape(count, side, side)


def test_grey_images_get_a_channel():
    source = from_array(grey())
    assert (len(source), source.channels, source.height, source.width) == (3, 1, 4, 4)
    assert np.array_equal(source.batch(np.array([2, 0]))[:, 0], grey()[[2, 0]])


def test_colour_images_come_channels_first():
    images = np.random.default_rng(0).integers(256, size=(2, 5, 6, 3), dtype=np.uint8)
    batch = from_array(images).batch(np.array([1]))
    assert batch.shape == (1, 3, 5, 6)
    assert batch[0, 2, 4, 5] == images[1, 4, 5, 2]


def test_transparent_images_lie_on_white():
    images = np.zeros((1, 4, 4, 4), dtype=np.uint8)
    images[0, 0, 0] = (10, 20, 30, 255)
    images[0, 0, 1] = (10, 20, 30, 51)  # a fifth of the colour on four fifths of white
    batch = from_array(images).batch(np.array([0]))[0]
    assert batch[:, 0, 0].tolist() == [10, 20, 30]
    assert batch[:, 0, 1].tolist() == [206, 208, 210]
    assert batch[:, 3, 3].tolist() == [255, 255, 255]


def test_floats_between_0_and_1_are_black_to_white():
    source = from_array(np.full((2, 4, 4), 0.5))
    assert source.batch(np.array([0])).max() == 128
    assert (source.black, source.white) == (0.0, 1.0)


def test_other_floats_are_read_from_their_smallest_to_their_largest():
    images = np.zeros((2, 4, 4))
    images[0], images[1] = -2.0, 6.0
    source = from_array(images)
    assert (source.black, source.white) == (-2.0, 6.0)
    assert source.batch(np.array([0, 1])).max(axis=(1, 2, 3)).tolist() == [0, 255]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("offset", [1e6, -1e6, 1e9])
def test_grey_levels_survive_an_offset(dtype, offset):
    if dtype == np.float32 and abs(offset) > 1e8:
        offset /= 1e3  # where a float32 still tells one from the next
    images = (np.arange(256).reshape(1, 16, 16) + offset).astype(dtype)
    batch = from_array(images).batch(np.array([0]))
    assert np.array_equal(batch[0, 0], np.arange(256).reshape(16, 16))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_largest_numbers_there_are_span_black_to_white(dtype):
    images = np.zeros((1, 4, 4), dtype)
    images[0, 0], images[0, 1] = np.finfo(dtype).min, np.finfo(dtype).max
    batch = from_array(images).batch(np.array([0]))[0, 0]
    assert batch[:3, 0].tolist() == [0, 255, 128]  # the middle, 127.5, goes to the even number


def test_the_smallest_difference_there_is_spans_black_to_white():
    images = np.zeros((1, 4, 4))
    images[0, 0], images[0, 1] = -5e-324, 5e-324
    assert from_array(images).batch(np.array([0]))[0, 0, :3, 0].tolist() == [0, 255, 128]


def test_new_images_are_read_by_the_range_of_the_old_and_clipped():
    source = from_array(np.full((1, 4, 4), 8.0), black=0.0, white=16.0)
    assert source.batch(np.array([0])).max() == 128
    assert from_array(np.full((1, 4, 4), 99.0), black=0.0, white=16.0).batch(np.array([0])).max() == 255


@pytest.mark.parametrize(
    ("images", "sentence"),
    [
        (np.zeros((4, 4)), "shape"),
        (np.zeros((2, 3, 4, 5)), "shape"),
        (np.zeros((0, 4, 4)), "no images"),
        (np.zeros((2, 3, 8), np.uint8), "too small"),
        (np.array([["a"]]), "shape"),
        (np.full((2, 4, 4), "a"), "uint8 or float"),
        (np.zeros((2, 4, 4), complex), "uint8 or float"),
    ],
)
def test_arrays_that_are_no_images_are_refused(images, sentence):
    with pytest.raises(InputError, match=sentence) as error:
        from_array(images, name="photos.npy")
    assert str(error.value).startswith("photos.npy: ")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_name_their_image(bad):
    images = np.zeros((3, 4, 4))
    images[1, 2, 2] = bad
    with pytest.raises(InputError, match="image 1 holds NaN"):
        from_array(images)


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2, 3], [[0], [1], [2]], [0.5, 1, 2], [None, 1, 2]])
def test_labels_must_be_one_an_image(labels):
    with pytest.raises(InputError, match="label"):
        from_array(grey(), labels)


def test_words_and_whole_floats_serve_as_labels():
    assert from_array(grey(), ["cat", "dog", "cat"]).labels.tolist() == ["cat", "dog", "cat"]
    assert from_array(grey(), np.array([1.0, 0.0, 2.0])).labels.dtype.kind == "i"


@pytest.mark.parametrize(
    ("labels", "read"),
    [
        (np.array([b"a", b"b", b"caf\xe9"]), ["a", "b", "café"]),
        (np.array(["thé".encode(), b"b", b"\x81"]), ["thé", "b", "\x81"]),
        (np.array([1, 2, 3], dtype=">i4"), [1, 2, 3]),
        (np.array(["x", "y", "z"], dtype=">U1"), ["x", "y", "z"]),
        (np.array([True, False, True]), [True, False, True]),
        (np.array([0, 1, 2**64 - 1], dtype=np.uint64), [0, 1, 2**64 - 1]),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_whatever_labels_hold_can_be_written(tmp_path, labels, read, ending):
    np.savez(tmp_path / "a.npz", images=grey(), labels=labels)
    found = open_source(tmp_path / "a.npz").labels
    assert found.tolist() == read
    write_table(ImageTable(["0", "1", "2"], np.zeros(3), np.ones(3), np.ones(3), found), tmp_path / f"t.{ending}")


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (["a", "\ud800", "c"], r"the label of image 1, '\\ud800', is not valid text"),
        ([0.0, np.inf, 1.0], "found inf"),
        ([0.0, -np.inf, 1.0], "found -inf"),
        ([0.0, np.nan, 1.0], "found nan"),
        ([0.0, 1e300, 1.0], r"labels go up to 1e\+300"),
    ],
)
def test_labels_that_cannot_be_written_or_counted_are_refused(labels, sentence):
    with pytest.raises(InputError, match=sentence):
        from_array(grey(), np.array(labels))


def test_npy_files_are_mapped_and_npz_files_bring_labels(tmp_path):
    np.save(tmp_path / "a.npy", grey())
    source = open_source(str(tmp_path / "a.npy"))
    assert np.array_equal(source.batch(np.arange(3))[:, 0], grey())
    np.savez(tmp_path / "b.npz", images=grey(), labels=[1, 2, 1])
    assert open_source(str(tmp_path / "b.npz")).labels.tolist() == [1, 2, 1]
    np.savez(tmp_path / "c.npz", x=grey(), y=[1, 2, 1])
    assert open_source(str(tmp_path / "c.npz")).labels.tolist() == [1, 2, 1]


def test_pickled_arrays_are_refused(tmp_path):
    path = tmp_path / "evil.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="cannot be read"):
        open_source(str(path))


@pytest.mark.parametrize("content", [b"", b"not numpy at all", b"\x93NUMPY\x01\x00"])
@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_broken_files_are_refused_by_name(tmp_path, content, ending):
    path = tmp_path / f"broken.{ending}"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"broken.{ending}: cannot be read"):
        open_source(str(path))


def test_a_file_cut_short_is_refused(tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, grey(100))
    path = tmp_path / "cut.npy"
    path.write_bytes(buffer.getvalue()[:-50])
    with pytest.raises(InputError, match="cannot be read"):
        open_source(str(path))


def test_an_archive_without_images_says_what_it_holds(tmp_path):
    np.savez(tmp_path / "other.npz", weights=np.zeros(3))
    with pytest.raises(InputError, match="found arrays weights"):
        open_source(str(tmp_path / "other.npz"))


def test_the_built_in_digits_are_scikit_learns():
    source = open_source("digits")
    assert (len(source), source.height, source.width, source.channels) == (1797, 8, 8, 1)
    assert source.batch(np.arange(1797)).max() == 255
    assert np.unique(source.labels).tolist() == list(range(10))


def test_statistics_are_those_of_the_pixels():
    images = np.random.default_rng(0).integers(256, size=(50, 6, 5, 3), dtype=np.uint8)
    mean, std = pixel_statistics(from_array(images))
    np.testing.assert_allclose(mean, (images / 255).mean(axis=(0, 1, 2)), atol=1e-12)
    np.testing.assert_allclose(std, (images / 255).std(axis=(0, 1, 2)), atol=1e-12)


def test_distinct_images_are_counted_up_to_a_limit():
    images = np.stack([grey(1)[0]] * 5 + [grey(1)[0] + 1])
    assert distinct_images(from_array(images), enough=10) == 2
    assert distinct_images(from_array(grey(3)), enough=2) == 2


def test_a_fingerprint_changes_with_a_pixel():
    changed = grey()
    changed[1, 2, 3] += 1
    assert fingerprint(from_array(grey())) == fingerprint(from_array(grey().copy()))
    assert fingerprint(from_array(grey())) != fingerprint(from_array(changed))
