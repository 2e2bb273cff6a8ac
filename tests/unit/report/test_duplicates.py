"""Exact and near duplicates, and bursts, of all images of a run."""

import shutil
import tracemalloc
from contextlib import nullcontext

import numpy as np
import pytest
from PIL import ExifTags, Image

from propos.data import find_source, from_array
from propos.data.files.images import FACTS
from propos.review.report import duplicates
from propos.review.report.duplicates import burst_pairs, exact_groups, groups, likely_pairs, near_pairs, taken_apart
from propos.review.report.pictures import draw_pictures
from propos.review.report.similar import find_similar
from propos.runs import VectorFile

TAKEN = 1_563_102_000_000  # 14 July 2019, 11:00:00


def unit(*values):
    vector = np.array(values, np.float32)
    return vector / np.linalg.norm(vector)


def everything(count):
    return np.ones(count, dtype=bool)


def near_groups(sketches, use=None):
    return groups(near_pairs(sketches, everything(len(sketches)) if use is None else use, seed=0))


def test_same_digests_and_files_of_the_same_bytes_are_exact_copies():
    images = np.array([10, 11, 12, 13, 14])
    assert exact_groups(images, [b"x", b"y", None, b"x", None]) == [[10, 13]]
    assert exact_groups(images, [b"x", b"y", None, b"x", None], [[3, 4], [13, 99]]) == [[3, 4], [10, 13, 99]]


def test_near_copies_have_nearly_the_same_sketch():
    sketches = np.stack([unit(1, 0, 0), unit(1, 0.05, 0), unit(0, 1, 0), unit(1, 0.05, 0), np.zeros(3), np.zeros(3)])
    assert near_groups(sketches.astype(np.float32)) == [[0, 1, 3]]
    assert near_groups(sketches.astype(np.float32), np.array([1, 1, 1, 0, 1, 1], bool)) == [[0, 1]]
    assert near_groups(np.zeros((3, 4), np.float32)) == []


def test_near_copies_are_found_among_many(monkeypatch):
    """Compared with all pairs by numpy: no near copy is missed, though leaves have a thirtieth of the images."""
    monkeypatch.setattr(duplicates, "LEAF", 64)
    rng = np.random.default_rng(0)
    one = rng.normal(size=(1_000, 48)).astype(np.float32)
    sketches = np.concatenate([one, one + 0.05 * rng.normal(size=one.shape)]).astype(np.float32)
    sketches /= np.linalg.norm(sketches, axis=1, keepdims=True)
    expected = np.argwhere(np.triu(sketches @ sketches.T > duplicates.ALIKE, 1)).tolist()
    assert len(expected) == 1_000
    assert sorted(near_groups(sketches)) == expected


def test_thousands_of_near_copies_take_no_more_memory_than_their_number():
    rng = np.random.default_rng(0)
    sketches = (np.ones((4_000, 16)) + 0.01 * rng.normal(size=(4_000, 16))).astype(np.float32)
    sketches /= np.linalg.norm(sketches, axis=1, keepdims=True)
    tracemalloc.start()
    try:
        found = near_groups(sketches)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == [list(range(4_000))]
    assert peak < 4_000 * 4_000  # a byte for each pair


def test_likely_copies_are_each_image_s_nearest(monkeypatch):
    monkeypatch.setattr(duplicates, "MOST_LIKELY", 2)
    embeddings = np.stack(
        [unit(1, 0, 0), unit(1, 0.3, 0), unit(0, 1, 0), unit(0, 1, 0.1), unit(0, 0, 1), unit(0, 0, 1)]
    )
    assert likely_pairs(embeddings, everything(6), seed=0).T.tolist() == [[4, 5], [2, 3]]


def facts(*rows):
    found = np.zeros(len(rows), FACTS)
    found["taken"], found["camera"] = zip(*rows, strict=True)
    return found


def test_a_burst_is_one_camera_s_similar_images_within_seconds():
    found = facts(
        (TAKEN, 7), (TAKEN + 900, 7), (TAKEN + 1_000, 8), (TAKEN + 60_000, 7), (TAKEN + 61_000, 7), (0, 7), (TAKEN, 0)
    )
    embeddings = np.stack([unit(1, 0), unit(1, 0.1), unit(1, 0), unit(1, 0), unit(0, 1), unit(1, 0), unit(1, 0)])
    assert burst_pairs(found, embeddings, everything(7)).T.tolist() == [[0, 1]]
    assert burst_pairs(found, embeddings, np.array([0, 1, 1, 1, 1, 1, 1], bool)).size == 0


def test_images_of_one_millisecond_are_one_photograph():
    same = np.stack([unit(1, 0)] * 2)
    assert burst_pairs(facts((TAKEN + 120, 7), (TAKEN + 120, 7)), same, everything(2)).size == 0
    assert burst_pairs(facts((TAKEN, 7), (TAKEN, 7)), same, everything(2)).T.tolist() == [[0, 1]]  # no milliseconds


def test_a_pair_taken_at_different_times_is_no_copy():
    pairs = np.array([[0, 0, 0], [1, 2, 3]])
    found = facts((TAKEN, 7), (TAKEN + 5, 7), (TAKEN + 5, 8), (0, 7))
    assert taken_apart(pairs, found).tolist() == [True, False, False]


def photograph(path, seed, at=None, quality=95, lighter=0):
    pixels = np.random.default_rng(seed).integers(40, 200, (8, 12, 3)) + lighter
    image = Image.fromarray(pixels.astype(np.uint8)).resize((96, 64), Image.Resampling.BICUBIC)
    exif = Image.Exif()
    if at is not None:
        exif[ExifTags.Base.Make] = "Camera"
        notes = exif.get_ifd(ExifTags.IFD.Exif)
        notes[ExifTags.Base.DateTimeOriginal] = f"2019:07:14 11:00:{at // 1000:02d}"
        notes[ExifTags.Base.SubsecTimeOriginal] = f"{at % 1000:03d}"
    image.save(path, quality=quality, exif=exif)


@pytest.fixture
def album(tmp_path):
    """Images: 0 and its copies of bytes, quality and light; 4 and 5 of a burst; six others."""
    photograph(tmp_path / "00.jpg", 1, at=120)
    shutil.copy(tmp_path / "00.jpg", tmp_path / "01.jpg")
    photograph(tmp_path / "02.jpg", 1, at=120, quality=60)
    photograph(tmp_path / "03.jpg", 1, lighter=12)
    photograph(tmp_path / "04.jpg", 2, at=1_000)
    photograph(tmp_path / "05.jpg", 2, at=1_250, quality=90)
    for number in range(6, 12):
        photograph(tmp_path / f"{number:02d}.jpg", number)
    return tmp_path


def search(source, order, folder, embeddings, kept=None):
    pictures = draw_pictures(source, np.array(order), folder, lambda done, total: None)
    kept = everything(len(source)) if kept is None else kept
    show_task = lambda words: nullcontext(lambda done, total: None)  # noqa: E731
    np.save(folder / "embeddings.npy", embeddings.astype(np.float32))
    return find_similar(source, pictures, VectorFile(folder / "embeddings.npy"), kept, 0, show_task)


@pytest.mark.parametrize("order", [range(12), [7, 0, 8]])
def test_copies_and_bursts_are_found_whether_or_not_they_have_pictures(album, tmp_path_factory, order):
    source = find_source(album).open(64)
    embeddings = np.stack([unit(*row) for row in np.eye(12)[[0, 0, 0, 0, 4, 4, 6, 7, 8, 9, 10, 11]]])
    found = search(source, order, tmp_path_factory.mktemp("sheets"), embeddings)
    assert found.exact == [[0, 1]]
    assert found.near == [[0, 2, 3]]
    assert found.bursts == [[4, 5]]


def test_junk_takes_no_part_in_the_search_for_near_copies(album, tmp_path):
    (tmp_path / "sheets").mkdir()
    source = find_source(album).open(64)
    kept = everything(12)
    kept[[3, 5]] = False
    found = search(source, range(12), tmp_path / "sheets", np.eye(12, dtype=np.float32), kept)
    assert (found.exact, found.near, found.bursts) == ([[0, 1]], [[0, 2]], [])


def test_equal_images_of_an_array_are_found_beyond_those_with_pictures(tmp_path):
    images = np.random.default_rng(0).integers(0, 255, (10, 12, 12), dtype=np.uint8)
    images[9] = images[4]
    found = search(from_array(images), [0, 1, 2], tmp_path, np.eye(10, dtype=np.float32))
    assert (found.exact, found.near, found.bursts) == ([[4, 9]], [], [])
