import contextlib
import errno
import json
import os
import random
import resource
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from helpers.awkward import picture
from helpers.forked import FORKS, Forked
from helpers.hold import wait_for_reader
from propos.common.errors import InputError
from propos.data import clean_caches, list_caches, open_folder
from propos.data.cache import images, store
from propos.data.cache.builder import JOURNAL, META
from propos.data.cache.images import Layout, cache_key, cached
from propos.data.cache.store import cache_folder, locked
from propos.data.decoding.pool import CRASHED, DecodePool
from propos.data.files.scan import scan

CLOCK = 1  # seconds; a file system's clock may be a little behind


class Building:
    """A process that builds the cache of a folder, two images at a time, and does a step only when it is told to."""

    def __init__(self, folder, workers=0):
        self._ours, theirs = FORKS.Pipe()
        self.words, said = FORKS.Pipe(duplex=False)
        self.process = Forked(_build, folder, workers, theirs, said)
        theirs.close()
        said.close()

    def step(self):
        """Let it continue to the next step, or to its end."""
        self._ours.send("continue")

    def done(self):
        """Wait until it asks to continue; return how many images are done."""
        return self._ours.recv()

    def rest(self):
        """Let it come to its end, and return the steps on the way there."""
        steps = []
        with contextlib.suppress(EOFError, OSError):
            while True:
                self.step()
                steps.append(self.done())
        self.process.communicate()
        return steps

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


def _build(folder, workers, steps, words):
    os.dup2(words.fileno(), sys.stderr.fileno())  # the decoding processes have it too
    words.close()
    images.JOB = 2

    def progress(done, _):
        steps.send(done)
        steps.recv()

    open_folder(folder, 8, progress=progress, workers=workers)


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))
    return tmp_path / "caches"


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    for number in range(40):
        path = folder / f"{number:02d}.png"
        path.parent.mkdir(exist_ok=True)
        picture(70, 50, seed=number).save(path)
    return folder


def pixels(folder, **options):
    return open_folder(folder, 8, workers=0, **options).images[:]


def expected(folder):
    """Pillow's own reading of a folder of sound PNG files."""
    from PIL import Image

    found = []
    for path in sorted(folder.iterdir()):
        with Image.open(path) as image:
            found.append(np.asarray(image.resize((8, 8), Image.Resampling.BICUBIC)))
    return np.stack(found)


def test_a_cache_holds_every_image_in_order(photos):
    seen = []
    source = open_folder(photos, 8, progress=lambda done, total: seen.append((done, total)), workers=2)
    assert np.array_equal(source.images[:], expected(photos))
    assert seen[0] == (0, 40)
    assert seen[-1] == (40, 40)
    assert seen == sorted(seen)


def test_the_second_time_nothing_is_decoded(photos, caches):
    first = pixels(photos)
    before = (next(caches.iterdir()) / "images.npy").stat()
    assert np.array_equal(pixels(photos, progress=lambda *_: pytest.fail("it was built again")), first)
    after = (next(caches.iterdir()) / "images.npy").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize("change", ["time", "content", "added", "deleted", "renamed"])
def test_a_changed_folder_is_noticed(photos, change):
    pixels(photos)
    status = (photos / "05.png").stat()
    if change == "time":
        os.utime(photos / "05.png", ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    elif change == "content":  # of the same size, and with its time put back
        content = bytearray((photos / "05.png").read_bytes())
        content[-1] ^= 1
        (photos / "05.png").write_bytes(content)
        os.utime(photos / "05.png", ns=(status.st_atime_ns, status.st_mtime_ns))
    elif change == "added":
        picture(70, 50, seed=99).save(photos / "055.png")
    elif change == "deleted":
        (photos / "05.png").unlink()
    else:
        (photos / "05.png").rename(photos / "99.png")
    built = []
    found = pixels(photos, progress=lambda *step: built.append(step))
    assert built
    if change != "content":
        assert np.array_equal(found, expected(photos))


def test_a_moved_folder_keeps_its_cache(photos):
    pixels(photos)
    moved = photos.rename(photos.with_name("moved"))
    pixels(moved, progress=lambda *_: pytest.fail("it was built again"))


def test_side_and_channels_have_caches_of_their_own(photos):
    found = scan(photos).images
    keys = {cache_key(found, side, channels) for side in (8, 9) for channels in (1, 3)}
    assert len(keys) == 4
    other = found.stamps.copy()
    other["size"][0] = 1
    assert cache_key(replace(found, stamps=other), 8, 3) not in keys
    assert cache_key(found[::-1], 8, 3) not in keys


def test_what_cannot_be_decoded_is_known_on_a_hit_too(photos):
    content = (photos / "07.png").read_bytes()
    (photos / "07.png").write_bytes(content[: len(content) // 2])
    built, hit = (open_folder(photos, 8, workers=0) for _ in range(2))
    for source in (built, hit):
        assert [(skipped.path, skipped.reason) for skipped in source.skipped] == [("07.png", "damaged or cut short")]
        assert len(source) == len(source.image_names()) == len(source.aspects) == 39
        assert "07.png" not in source.image_names()
    (photos / "07.png").unlink()
    assert np.array_equal(hit.images[:], expected(photos))


def test_a_folder_of_damaged_images_is_refused_each_time(photos):
    for path in photos.iterdir():
        path.write_bytes(path.read_bytes()[:200])
    for _ in range(2):
        with pytest.raises(InputError, match=r"no image in it can be read: 00.png \(damaged"):
            open_folder(photos, 8, workers=0)


@pytest.mark.full
def test_killed_twenty_times_the_building_still_ends_right(photos, caches):
    kills = random.Random(0)
    reached = 0
    for attempt in range(20):
        building = Building(photos)
        first = building.done()
        assert first >= reached  # what was built stays built
        reached = first
        if kills.randrange(2):
            building.step()
            reached = building.done()
        if attempt % 4 == 0:  # somewhere within the step
            building.step()
        building.kill()
        if attempt % 5 == 0 and list(caches.glob("*.building")):  # as a power cut might leave it
            with next(caches.glob("*.building")).joinpath(JOURNAL).open("r+b") as journal:
                journal.truncate(max(0, journal.seek(0, os.SEEK_END) - 7))
            reached = max(0, reached - 2)
    assert 10 < reached < 40
    assert np.array_equal(pixels(photos), expected(photos))
    assert [path.name for path in caches.iterdir()] == [list_caches()[0].key]


def test_a_build_killed_with_its_workers_resumes(photos):
    building = Building(photos, workers=2)
    for _ in range(3):
        building.done()
        building.step()
    building.done()
    building.kill()
    assert (
        os.read(building.words.fileno(), 1) == b""
    )  # its end is reached when the last worker has gone, without a word
    steps = []
    assert np.array_equal(pixels(photos, progress=lambda done, _: steps.append(done)), expected(photos))
    assert 2 <= steps[0] < 40


def test_pixels_the_journal_does_not_vouch_for_are_made_again(photos, caches):
    building = Building(photos)
    while building.done() < 14:
        building.step()
    building.kill()
    path = next(caches.glob("*.building")) / "images.npy"
    with path.open("r+b") as file:
        file.seek(128 + 5 * 8 * 8 * 3)  # in the third step
        file.write(b"\xff\x00\xff")
    steps = []
    assert np.array_equal(pixels(photos, progress=lambda done, _: steps.append(done)), expected(photos))
    assert steps[0] == 4


def test_interrupting_leaves_what_can_go_on(photos, caches):
    def interrupt(done, total):
        if done >= 32:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_folder(photos, 8, progress=interrupt, workers=1)
    assert [info.complete for info in list_caches()] == [False]
    assert not list(caches.glob("*.lock"))
    steps = []
    assert np.array_equal(pixels(photos, progress=lambda done, _: steps.append(done)), expected(photos))
    assert steps == [32, 40]


def test_two_processes_build_one_cache_together(photos, caches):
    first = Building(photos)
    assert first.done() == 0
    second = Building(photos)
    assert second.done() == 0  # it watches
    assert first.rest() == list(range(2, 41, 2))  # one did all the work
    watched = second.rest()
    assert watched == sorted(watched)
    assert (first.process.returncode, second.process.returncode) == (0, 0)
    assert [path.name for path in caches.iterdir()] == [list_caches()[0].key]
    assert np.array_equal(pixels(photos), expected(photos))


def test_two_threads_build_one_cache_together(photos):
    found = scan(photos)
    steps, results = [], []
    threads = [
        threading.Thread(
            target=lambda: results.append(
                cached(found.images, photos, Layout(8, 3), lambda *_: steps.append(1), workers=1)
            )
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(result.images[:], expected(photos)) for result in results)


@pytest.mark.parametrize("limit", [100, 3_000, 7_000])
def test_a_full_disk_is_an_error_and_the_build_resumes_later(photos, caches, limit):
    picture(5, 5).save(photos.with_name("other.png"))
    other = open_folder(photos.with_name("other.png"), 8, workers=0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(OSError, match="File too large") as error:
            open_folder(photos, 8, workers=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert error.value.errno == errno.EFBIG
    assert [info.complete for info in list_caches() if info.source == str(photos)] in ([], [False])
    assert np.array_equal(open_folder(photos.with_name("other.png"), 8).images[:], other.images[:])
    assert np.array_equal(pixels(photos), expected(photos))


def test_too_little_room_is_said_before_decoding(photos):
    with pytest.raises(OSError, match="GB are free: make room, or name another folder in PROPOS_CACHE") as error:
        open_folder(photos, 1_000_000, workers=0)
    assert error.value.errno == errno.ENOSPC


@pytest.mark.parametrize("damage", ["meta.json", "images.npy", "aspects.npy", "checksums.npy"])
def test_a_damaged_cache_is_built_again(photos, caches, damage):
    pixels(photos)
    path = next(caches.iterdir()) / damage
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert np.array_equal(pixels(photos), expected(photos))


def test_caches_are_listed_and_cleaned(photos, caches):
    began = time.time() - CLOCK
    pixels(photos)
    open_folder(photos / "00.png", 100, workers=0)
    now = time.time()
    old = caches / cache_key(scan(photos).images, 8, 3)
    os.utime(old / META, (now - 10 * 86_400,) * 2)
    recent, older = list_caches()
    assert (older.key, older.source, older.images, older.complete) == (old.name, str(photos), 40, True)
    assert older.bytes >= 40 * 8 * 8 * 3
    assert began <= recent.last_used <= now + CLOCK
    assert clean_caches(older_than_days=11) == []
    assert clean_caches(older_than_days=9) == [older]
    assert not old.exists()
    kept = open_folder(photos / "00.png", 100)
    before = kept.images[:]
    assert clean_caches() == [recent] or len(list_caches()) == 0
    assert np.array_equal(kept.images[:], before)  # a reader can continue
    assert list(caches.iterdir()) == []


def test_a_cache_being_built_is_not_cleaned_away(photos, caches):
    building = Building(photos)
    while building.done() < 4:
        building.step()
    assert clean_caches() == []
    building.kill()
    assert [info.complete for info in clean_caches()] == [False]
    assert list_caches() == []


def test_using_a_cache_is_noted(photos, caches):
    pixels(photos)
    meta = next(caches.iterdir()) / META
    os.utime(meta, (0, 0))
    began = time.time() - CLOCK
    pixels(photos)
    assert list_caches()[0].last_used >= began
    assert json.loads(meta.read_bytes())["images"] == 40


def test_the_lock_is_one_at_a_time(caches):
    with locked("a"), pytest.raises(BlockingIOError), locked("a"):
        pass
    with locked("a"):
        assert (caches / "a.lock").exists()
    assert not (caches / "a.lock").exists()


def test_the_lock_excludes_others_even_if_its_file_is_removed_while_they_wait(caches, monkeypatch):
    monkeypatch.setattr(store, "_WAIT", 0.0)
    inside, most = 0, 0

    def build(_):
        nonlocal inside, most
        with locked("a", waiting=lambda: None):
            inside += 1
            most = max(most, inside)
            time.sleep(0)  # others have their turn
            inside -= 1

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(build, range(200)))
    assert most == 1
    assert list(caches.iterdir()) == []


def test_the_folder_of_caches_follows_the_environment(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path / "caches"
    monkeypatch.delenv("PROPOS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "propos"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "propos"


def test_an_image_that_ends_its_decoder_is_skipped_alone(photos, tmp_path):
    os.mkfifo(tmp_path / "pipe")  # the reader waits, and is killed as by a crash
    entries = list(scan(photos).images[:3])
    entries.insert(1, replace(entries[0], path=tmp_path / "pipe"))
    with DecodePool(8, 3, workers=1) as pool:
        future = pool.submit(entries)
        for _ in range(2):  # among the others, then alone
            held = wait_for_reader(tmp_path / "pipe")
            (worker,) = pool._running
            worker.process.kill()
            worker.process.wait()
            os.close(held)
        decoded = future.result()
    assert decoded.failed == {1: CRASHED}
    assert np.array_equal(decoded.images, expected(photos)[:3])
