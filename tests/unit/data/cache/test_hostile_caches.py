"""A cache folder that others have written to, damaged or taken away."""

import os

import numpy as np
import pytest

from helpers.awkward import picture
from helpers.command import command
from propos.cli.cache import format_date
from propos.data import clean_caches, list_caches, open_folder


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))
    return tmp_path / "caches"


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(6):
        picture(70, 50, seed=number).save(folder / f"{number}.png")
    return folder


def interrupted(photos):
    """Build a cache up to its end, and stop there."""

    def stop(done, total):
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_folder(photos, 8, workers=0, progress=stop)


def test_cleaning_leaves_alone_what_is_not_ours(photos, caches):
    open_folder(photos, 8, workers=0)
    picture(70, 50, seed=6).save(photos / "6.png")
    interrupted(photos)
    (ours,) = (path for path in caches.iterdir() if path.suffix != ".building")
    (caches / "linked").symlink_to(ours)
    theirs = {"theirs": "meta.json", "0123456789abcdef" * 2: "meta.json", "app.building": "main.o", ".trash-1": "x"}
    for folder, file in theirs.items():
        (caches / folder).mkdir()
        (caches / folder / file).write_text('{"source": "x", "images": 3, "skipped": []}')
    assert len(list_caches()) == len(clean_caches()) == 2
    assert {path.name for path in caches.iterdir()} == {"linked", *theirs}
    for folder, file in theirs.items():
        assert (caches / folder / file).exists()


def test_what_a_kill_left_of_a_removed_cache_is_removed_the_next_time(photos, caches):
    open_folder(photos, 8, workers=0)
    (ours,) = caches.iterdir()
    (ours / "images.npy").unlink()
    ours.rename(caches / ".trash-0")
    assert clean_caches() == []
    assert list(caches.iterdir()) == []


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"[]",
        b"null",
        b'{"aspects": 3, "failed": [], "checksum": 0}',
        b'{"aspects": ["wide"], "failed": [], "checksum": 0}',
        b'{"aspects": [], "failed": [[0]], "checksum": 0}',
        b'{"aspects": [], "failed": {"0": "damaged"}, "checksum": 0}',
        b'{"aspects": [], "failed": []}',
        b'{"source": 5}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
@pytest.mark.parametrize("place", [0, 1])
def test_a_damaged_journal_counts_up_to_the_damage(photos, caches, line, place):
    interrupted(photos)
    (journal,) = caches.glob("*.building/journal.jsonl")
    lines = journal.read_bytes().splitlines()
    journal.write_bytes(b"\n".join([*lines[:place], line, *lines[place:]]) + b"\n")
    assert [info.complete for info in list_caches()] == [False]
    assert len(open_folder(photos, 8, workers=0)) == 6


@pytest.mark.parametrize(
    "content", ["[]", '{"skipped": 5}', '{"skipped": [[1, 2]]}', '{"skipped": "ab"}', "[" * 100_000]
)
def test_a_damaged_description_means_a_new_cache(photos, caches, content):
    open_folder(photos, 8, workers=0)
    (ours,) = caches.iterdir()
    (ours / "meta.json").write_text(content)
    assert [info.source for info in list_caches()] == ["damaged"]
    assert open_folder(photos, 8, workers=0).skipped == []


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("aspects.npy", lambda array: array[:, None]),
        ("aspects.npy", lambda array: array.astype(complex)),
        ("aspects.npy", lambda array: -array),
        ("checksums.npy", lambda array: array[:3]),
        ("checksums.npy", lambda array: array.astype(np.int64)),
        ("images.npy", lambda array: array.astype(np.float32)),
        ("images.npy", lambda array: array[:, :4]),
        ("images.npy", lambda array: array.reshape(-1)),
        ("images.npy", lambda array: array[:3]),
    ],
)
def test_arrays_that_are_not_these_images_mean_a_new_cache(photos, caches, file, change):
    expected = open_folder(photos, 8, workers=0).images[:]
    (ours,) = caches.iterdir()
    np.save(ours / file, change(np.load(ours / file)))
    source = open_folder(photos, 8, workers=0)
    assert np.array_equal(source.images[:], expected)
    assert source.aspects.tolist() == [70 / 50] * 6


@pytest.mark.parametrize("header", [b"{desc': \x8c", b"{" * 100, b"(" * 5_000, b"{'descr': '<f8', 'shape': (6"])
def test_a_header_that_is_none_means_a_new_cache(photos, caches, header):
    open_folder(photos, 8, workers=0)
    (ours,) = caches.iterdir()
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    (ours / "aspects.npy").write_bytes(content + bytes(100))
    assert open_folder(photos, 8, workers=0).aspects.tolist() == [70 / 50] * 6


def test_a_cache_that_leaves_out_an_image_it_holds_is_made_again(photos, caches):
    open_folder(photos, 8, workers=0)
    (ours,) = caches.iterdir()
    (ours / "meta.json").write_text('{"source": "x", "images": 6, "skipped": [["3.png", "damaged"]]}')
    source = open_folder(photos, 8, workers=0)
    assert (len(source), source.skipped) == (6, [])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize(
    "file", ["meta.json", "images.npy", "aspects.npy", "checksums.npy", "frames.npy", "CACHEDIR.TAG"]
)
def test_a_pipe_in_a_cache_is_not_waited_for(photos, caches, file):
    whole = open_folder(photos, 8, workers=0, shaped=True).batch(np.arange(6))
    (ours,) = caches.iterdir()
    (ours / file).unlink()
    os.mkfifo(ours / file)
    assert [info.source for info in list_caches()] == {"meta.json": ["damaged"], "CACHEDIR.TAG": []}.get(
        file, [str(photos)]
    )
    assert np.array_equal(open_folder(photos, 8, workers=0, shaped=True).batch(np.arange(6)), whole)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("file", ["images.npy", "journal.jsonl"])
def test_a_pipe_in_an_unfinished_cache_is_not_waited_for(photos, caches, file):
    interrupted(photos)
    (ours,) = caches.glob("*.building")
    (ours / file).unlink()
    os.mkfifo(ours / file)
    assert [info.complete for info in list_caches()] == [False]
    assert len(open_folder(photos, 8, workers=0)) == 6


@pytest.mark.parametrize("shaped", [False, True])
def test_a_cache_that_is_cut_while_it_is_read_is_one_line_and_no_signal(photos, caches, shaped):
    source = open_folder(photos, 8, workers=0, shaped=shaped)
    whole = source.batch(np.arange(6))
    (ours,) = caches.iterdir()
    with (ours / "images.npy").open("r+b") as file:
        file.truncate(300)
    with pytest.raises(OSError, match=r"was cut short while it was in use; the cache is rebuilt by the next run"):
        source.batch(np.arange(6))
    again = open_folder(photos, 8, workers=0, shaped=shaped)
    assert np.array_equal(again.batch(np.arange(6)), whole)


@pytest.mark.parametrize("shaped", [False, True])
def test_a_pixel_that_has_changed_on_the_disk_is_noticed_and_the_cache_made_again(photos, caches, shaped):
    whole = open_folder(photos, 8, workers=0, shaped=shaped).batch(np.arange(6))
    (ours,) = caches.iterdir()
    content = bytearray((ours / "images.npy").read_bytes())
    content[-5] ^= 1  # of the last image
    (ours / "images.npy").write_bytes(content)
    source = open_folder(photos, 8, workers=0, shaped=shaped)
    assert np.array_equal(source.batch(np.arange(5)), whole[:5])
    with pytest.raises(OSError, match=r"has changed on the disk since it was cached; the cache is rebuilt by the next"):
        source.batch(np.arange(6))
    again = open_folder(photos, 8, workers=0, shaped=shaped)
    assert np.array_equal(again.batch(np.arange(6)), whole)


@pytest.mark.parametrize("seconds", [1e12, -1e12, 1e18, float("inf")])
def test_a_time_beyond_the_calendar_is_no_fault(seconds):
    assert format_date(seconds) == "at an unknown time"
    assert format_date(86_400.0 * 3).startswith("1970-01-0")


def test_a_number_beyond_reason_is_listed_as_damaged(photos, caches, capsys):
    open_folder(photos, 8, workers=0)
    (ours,) = caches.iterdir()
    (ours / "meta.json").write_text('{"source": "x", "images": Infinity, "skipped": []}')
    result = command(capsys, "cache", "list")
    assert (result.code, "damaged" in result.out) == (0, True)
