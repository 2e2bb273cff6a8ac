"""A cache folder that others have written to, damaged or taken away."""

import pytest

from helpers.awkward import picture
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
