"""The index of a folder's files: what is read again, and what is not."""

import json
import os
import shutil
import threading
import time
import tracemalloc
import zipfile

import numpy as np
import pyarrow as pa
import pytest

from helpers.awkward import picture
from propos.data import list_caches, scan
from propos.data.cache import index
from propos.data.cache.index import FEWEST, INDEX, RECENT, indexed_scan
from propos.data.files import scan as scanning

FILES = FEWEST + 4


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Files that were changed long before any scan."""
    folder = tmp_path_factory.mktemp("originals")
    for number in range(4):
        picture(20 + number, 10, 3, seed=number).save(folder / f"{number}.png")
    (folder / "notes.txt").write_text("words")
    (folder / "cut.png").write_bytes((folder / "0.png").read_bytes()[:20])
    return folder


@pytest.fixture
def photos(originals, tmp_path, monkeypatch):
    """Hundreds of files, and a clock that is an hour ahead, so that all of them count as old."""
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))
    folder = tmp_path / "photos"
    (folder / "a").mkdir(parents=True)
    for number in range(FILES):
        shutil.copy(originals / f"{number % 4}.png", folder / "a" / f"{number:03d}.png")
    shutil.copy(originals / "notes.txt", folder)
    shutil.copy(originals / "cut.png", folder)
    own = time.time_ns
    monkeypatch.setattr("time.time_ns", lambda: own() + 3600 * 10**9)
    return folder


@pytest.fixture
def opened(monkeypatch):
    """The names of the files that are opened."""
    names = []
    edges = scanning.edges

    def noted(entry):
        names.append(entry.name)
        return edges(entry)

    monkeypatch.setattr(scanning, "edges", noted)
    return names


def everything(found):
    images = found.images
    return list(images.names), images.stamps.tolist(), images.facts.tolist(), found.skipped


def index_file(tmp_path):
    (path,) = (tmp_path / "caches").glob(f"*/{INDEX}")
    return path


def test_nothing_is_opened_again_and_the_result_is_the_same(photos, opened):
    first = indexed_scan(photos)
    assert len(opened) == FILES + 2
    opened.clear()
    again = indexed_scan(photos)
    assert opened == []
    assert everything(again) == everything(first) == everything(scan(photos))
    assert [(each.path, each.reason[:7]) for each in again.skipped] == [
        ("cut.png", "damaged"),
        ("notes.txt", "not a J"),
    ]


def test_only_what_changed_is_opened(photos, originals, opened):
    indexed_scan(photos)
    opened.clear()
    (photos / "a" / "003.png").unlink()
    shutil.copy(originals / "2.png", photos / "new.png")
    (photos / "a" / "005.png").unlink()
    shutil.copy(originals / "3.png", photos / "a" / "005.png")
    found = indexed_scan(photos)
    assert sorted(opened) == ["a/005.png", "new.png"]
    assert everything(found) == everything(scan(photos))


def test_a_file_overwritten_with_its_old_size_and_time_is_noticed(photos, opened):
    """Neither the folder's time, nor the file's size, time or inode say that it changed."""
    path = photos / "own.bmp"
    picture(40, 40, 3, seed=1).save(path)
    before = indexed_scan(photos).images
    opened.clear()
    status, folder = path.stat(), photos.stat().st_mtime_ns
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (photos.stat().st_mtime_ns, path.stat().st_mtime_ns) == (folder, status.st_mtime_ns)
    after = indexed_scan(photos).images
    assert opened == ["own.bmp"]
    assert after.identity != before.identity
    assert after.identity == scan(photos).images.identity


def test_files_changed_at_the_time_of_the_scan_are_compared_again(photos, opened, monkeypatch):
    """The next change may carry the same time."""
    newest = max(path.stat().st_ctime_ns for path in photos.rglob("*.*"))
    monkeypatch.setattr("time.time_ns", lambda: newest + RECENT)
    indexed_scan(photos)
    old = {path.name for path in photos.rglob("*.*") if path.stat().st_ctime_ns < newest}
    opened.clear()
    indexed_scan(photos)
    assert opened
    assert not old & {name.rpartition("/")[2] for name in opened}
    monkeypatch.setattr("time.time_ns", lambda: newest + RECENT + 1)
    indexed_scan(photos)
    opened.clear()
    indexed_scan(photos)
    assert opened == []


def test_where_change_times_are_not_kept_digests_are_compared(photos, opened, monkeypatch):
    monkeypatch.setattr("propos.data.files.listing.timed_devices", frozenset)
    first = indexed_scan(photos)
    opened.clear()
    headers = []
    monkeypatch.setattr(scanning, "read_header", headers.append)
    assert everything(indexed_scan(photos)) == everything(first)
    assert len(opened) == FILES + 2
    assert [entry.name for entry in headers] == ["cut.png"]


@pytest.mark.parametrize("change", ["cut", "flipped", "empty", "text", "gone", "columns"])
def test_a_damaged_index_is_rebuilt_and_said_to_be(photos, tmp_path, opened, change):
    expected = everything(indexed_scan(photos))
    path = index_file(tmp_path)
    content = path.read_bytes()
    damaged = {
        "cut": content[: len(content) // 2],
        "flipped": content[:1000] + bytes([content[1000] ^ 1]) + content[1001:],
        "empty": b"",
        "text": b"PAR1 no, it is not PAR1",
    }
    if change == "gone":
        path.unlink()
    elif change == "columns":
        pa.parquet.write_table(pa.parquet.read_table(path).drop_columns(["inode"]), path)
    else:
        path.write_bytes(damaged[change])
    opened.clear()
    found = indexed_scan(photos)
    assert (everything(found), len(opened)) == (expected, FILES + 2)
    assert found.notes == [f"{path}: the index of the files was damaged: all files were read again"]
    assert indexed_scan(photos).notes == []


@pytest.mark.full
def test_no_flipped_bit_of_an_index_changes_a_result(photos, tmp_path):
    expected = everything(indexed_scan(photos))
    path = index_file(tmp_path)
    content = path.read_bytes()
    for place in np.linspace(0, len(content) - 1, 300).astype(int).tolist():
        path.write_bytes(content[:place] + bytes([content[place] ^ (1 << place % 8)]) + content[place + 1 :])
        assert everything(indexed_scan(photos)) == expected, place


def test_the_index_of_another_version_is_replaced_without_a_word(photos, tmp_path, opened, monkeypatch):
    indexed_scan(photos)
    opened.clear()
    monkeypatch.setattr("PIL.__version__", "0")
    assert indexed_scan(photos).notes == []
    assert len(opened) == FILES + 2


def test_an_index_is_listed_among_the_caches_and_small_folders_have_none(photos, tmp_path):
    for number in range(FEWEST, FILES):
        (photos / "a" / f"{number:03d}.png").unlink()
    indexed_scan(photos)
    (kept,) = list_caches()
    assert (kept.source, kept.images, kept.complete) == (f"index of {photos}", FEWEST, True)
    shutil.rmtree(tmp_path / "caches")
    for number in range(3):
        (photos / "a" / f"{number:03d}.png").unlink()
    indexed_scan(photos)
    assert list_caches() == []


def test_a_cache_folder_that_fills_up_costs_only_the_index(photos, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(index, "write_atomically", full)
    found = indexed_scan(photos)
    assert everything(found) == everything(scan(photos))
    assert [note.rpartition(": ")[2] for note in found.notes] == ["no space left on device"]


def test_lists_and_archives_have_an_index_too(photos, opened):
    names = [f"a/{number:03d}.png" for number in range(FILES)]
    (photos / "list.csv").write_text("image,label\n" + "".join(f"{name},{name[-5]}\n" for name in names))
    with zipfile.ZipFile(photos.with_suffix(".zip"), "w") as archive:
        for name in names:
            archive.write(photos / name, name)
    for what in (photos / "list.csv", photos.with_suffix(".zip"), [photos / name for name in names]):
        first = indexed_scan(what)
        assert len(opened) == FILES
        opened.clear()
        again = indexed_scan(what)
        assert opened == []
        assert everything(again) == everything(first)
        assert [entry.label for entry in again.images] == [entry.label for entry in first.images]
    assert indexed_scan(photos / "list.csv").images[7].label == "7"


def test_commands_at_the_same_time_get_the_same_images(photos):
    expected, results = everything(scan(photos)), []

    def work():
        results.extend(everything(indexed_scan(photos)) for _ in range(3))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 9


def test_the_originals_are_not_written_to(photos):
    def state():
        return sorted((str(path), path.stat().st_mtime_ns) for path in [photos, *photos.rglob("*")])

    before = state()
    indexed_scan(photos)
    indexed_scan(photos)
    assert state() == before


def test_an_image_takes_less_than_a_hundred_bytes(photos):
    """The bytes that Python, numpy and Arrow hold for a scan, names of 35 bytes included."""
    folder = photos / "a" / "2019-07-14 Summer holidays"
    folder.mkdir()
    for number in range(2_000):
        (folder / f"{number:05d}.png").hardlink_to(photos / "a" / f"{number % 4:03d}.png")
    indexed_scan(photos)
    arrow = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        found = indexed_scan(photos)
        taken = tracemalloc.get_traced_memory()[0] - before + pa.total_allocated_bytes() - arrow
    finally:
        tracemalloc.stop()
    assert taken / len(found.images) < 100


def test_the_index_says_what_it_was_made_with(photos, tmp_path):
    indexed_scan(photos)
    made = json.loads(pa.parquet.read_schema(index_file(tmp_path)).metadata[b"propos"])
    assert made.keys() == {"format", "pillow", "heic", "read"}
