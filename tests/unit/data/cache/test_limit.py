import numpy as np
import pytest

from helpers.awkward import picture
from propos.common.errors import InputError
from propos.data import (
    FolderSource,
    StreamedSource,
    find_source,
    fingerprint,
    list_caches,
    pixel_statistics,
    prefetch,
    readable,
)
from propos.data.cache.limit import refusal

NEEDED = 9 * 20 * 20 * 3


@pytest.fixture(autouse=True)
def _caches(tmp_path, monkeypatch):
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))
    monkeypatch.delenv("PROPOS_CACHE_LIMIT", raising=False)


@pytest.fixture
def found(tmp_path):
    (tmp_path / "photos").mkdir()
    for number in range(9):
        picture(80, 70, seed=number).save(tmp_path / "photos" / f"{number}.png")
    return find_source(tmp_path / "photos")


def test_images_are_kept_up_to_the_limit_and_streamed_above_it(found, monkeypatch):
    monkeypatch.setenv("PROPOS_CACHE_LIMIT", str(NEEDED - 1))
    assert isinstance(found.open(20), StreamedSource)
    monkeypatch.setenv("PROPOS_CACHE_LIMIT", f"{NEEDED / 1000} kB")
    assert isinstance(found.open(20), FolderSource)
    monkeypatch.setenv("PROPOS_CACHE_LIMIT", "0")
    assert isinstance(found.open(20), FolderSource)  # it exists
    assert isinstance(found.open(20, keep="stream"), StreamedSource)


def test_images_that_are_read_once_are_not_kept(found, tmp_path):
    assert isinstance(found.open(20, keep="use"), StreamedSource)
    assert not (tmp_path / "caches").exists()
    found.open(20)
    assert isinstance(found.open(20, keep="use"), FolderSource)


def test_the_refusal_says_how_much_and_a_wrong_limit_how_to_write_it(found, monkeypatch):
    entries = found.scan.images
    assert refusal(entries, 20, 3) is None
    assert "half of the free disk space" in refusal(entries, 10**7, 3)
    monkeypatch.setenv("PROPOS_CACHE_LIMIT", "10")
    assert "more than PROPOS_CACHE_LIMIT" in refusal(entries, 20, 3)
    monkeypatch.setenv("PROPOS_CACHE_LIMIT", "much")
    with pytest.raises(InputError, match="PROPOS_CACHE_LIMIT=much: write it as 500MB or 20GB"):
        refusal(entries, 20, 3)


def no_home(monkeypatch):
    """As in a container whose user is a mere number."""

    def nobody(number):
        raise KeyError(number)

    monkeypatch.delenv("PROPOS_CACHE")
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)


def test_without_a_home_images_are_streamed_and_the_reason_named(found, monkeypatch):
    no_home(monkeypatch)
    with found.open(20) as source:
        assert isinstance(source, StreamedSource)
    assert "name a folder in PROPOS_CACHE" in refusal(found.scan.images, 20, 3)
    with pytest.raises(InputError, match="name a folder in PROPOS_CACHE"):
        list_caches()


@pytest.mark.parametrize("where", ["/dev/null/caches", "/proc/caches", "~nosuch/caches"])
def test_a_cache_folder_that_cannot_be_written_to_means_streaming(found, monkeypatch, where):
    monkeypatch.setenv("PROPOS_CACHE", where)
    with found.open(20) as source:
        assert isinstance(source, StreamedSource)
    why = refusal(found.scan.images, 20, 3)
    assert why.startswith(where)
    assert why.endswith(("name another folder in PROPOS_CACHE", "write the path in full"))


def test_a_home_folder_of_nobody_is_refused_in_one_line(monkeypatch):
    monkeypatch.setenv("PROPOS_DATA", "~nosuch/sets")
    with pytest.raises(InputError, match="~nosuch/sets: there is no such home folder; write the path in full"):
        find_source("cifar-10")


def test_a_streamed_source_is_to_the_bit_what_the_cache_is(found):
    kept = found.open(20)
    with found.open(20, keep="stream") as streamed:
        assert fingerprint(streamed) == fingerprint(kept)
        assert pixel_statistics(streamed) == pixel_statistics(kept)
        order = np.random.default_rng(0).permutation(9)
        for batches in (order[:8].reshape(-1, 2), order[:6].reshape(-1, 3)):
            prefetch(streamed, batches)
            prefetch(kept, batches)
            for batch in batches:
                assert np.array_equal(streamed.batch(batch), kept.batch(batch))
        prefetch(streamed, order[:8].reshape(-1, 2))
        unexpected = np.array([8, 0])
        assert np.array_equal(streamed.batch(unexpected), kept.batch(unexpected))


def test_damaged_images_are_known_after_they_were_read(found, tmp_path):
    whole = (tmp_path / "photos" / "4.png").read_bytes()
    (tmp_path / "photos" / "4.png").write_bytes(whole[:-3000])
    with found.open(20, keep="stream") as streamed:
        streamed.batch(np.arange(9))
        assert readable(streamed, np.array([3, 4, 5])).tolist() == [True, False, True]
        assert [skipped.path for skipped in streamed.skipped] == ["4.png"]
    assert found.scan.skipped == []
    assert readable(found.open(20), np.arange(3)).tolist() == [True] * 3
