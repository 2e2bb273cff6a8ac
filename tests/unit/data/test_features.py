import numpy as np
import pytest

from propos.data import cached_features, clean_caches, from_array, list_caches

BATCHES = [np.arange(start, min(start + 4, 10)) for start in range(0, 10, 4)]


@pytest.fixture(autouse=True)
def _caches(tmp_path, monkeypatch):
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))


class Network:
    """Makes of an image its number and a third of it; breaks before a batch if told to."""

    def __init__(self, breaks_at=None):
        self.breaks_at, self.asked = breaks_at, []

    def __call__(self, positions):
        if self.breaks_at is not None and positions[0] >= self.breaks_at:
            raise KeyboardInterrupt
        self.asked += positions.tolist()
        return np.stack([positions, positions / 3], axis=1).astype(np.float32)


def images(seed=0):
    return from_array(np.random.default_rng(seed).integers(0, 256, (10, 8, 8), dtype=np.uint8), name="ten")


def features(source, network, name="network"):
    done = []
    rows = cached_features(source, name, 2, BATCHES, network, lambda seen, of: done.append((seen, of))).rows
    return rows(np.arange(10)), done


EXPECTED = np.stack([np.arange(10), np.arange(10) / 3], axis=1).astype(np.float32)


def test_features_are_computed_once():
    table, done = features(images(), Network())
    assert np.array_equal(table, EXPECTED)
    assert done == [(0, 10), (4, 10), (8, 10), (10, 10)]
    again = Network(breaks_at=0)
    assert np.array_equal(features(images(), again)[0], EXPECTED)
    assert again.asked == []


def test_what_was_computed_before_a_stop_is_kept():
    with pytest.raises(KeyboardInterrupt):
        features(images(), Network(breaks_at=8))
    rest = Network()
    table, done = features(images(), rest)
    assert rest.asked == [8, 9]
    assert done[0] == (8, 10)
    assert np.array_equal(table, EXPECTED)


def test_a_number_that_has_changed_on_the_disk_is_noticed_and_they_are_computed_again(tmp_path):
    features(images(), Network())
    (ours,) = (tmp_path / "caches").iterdir()
    content = bytearray((ours / "images.npy").read_bytes())
    content[-1] ^= 1
    (ours / "images.npy").write_bytes(content)
    with pytest.raises(OSError, match="has changed on the disk since it was cached"):
        features(images(), Network())
    again = Network()
    assert np.array_equal(features(images(), again)[0], EXPECTED)
    assert again.asked == list(range(10))


@pytest.mark.parametrize(("seed", "name"), [(1, "network"), (0, "another")])
def test_other_images_and_other_weights_have_features_of_their_own(seed, name):
    features(images(), Network())
    network = Network()
    features(images(seed), network, name)
    assert network.asked == list(range(10))


def test_they_are_listed_and_cleaned_with_the_other_caches():
    features(images(), Network())
    assert [(info.source, info.images, info.complete) for info in list_caches()] == [("ten", 10, True)]
    clean_caches()
    network = Network()
    features(images(), network)
    assert len(network.asked) == 10


def spoil_description(cache):
    (cache / "meta.json").write_text('{"source": "ten", "images": 10, "skipped": [["3", "damaged"]]}')
    np.save(cache / "aspects.npy", np.ones(9))


def spoil_width(cache):
    np.save(cache / "images.npy", np.load(cache / "images.npy")[:, :, :1])


def spoil_length(cache):
    (cache / "images.npy").write_bytes((cache / "images.npy").read_bytes()[:-1])


@pytest.mark.parametrize("damage", [spoil_description, spoil_width, spoil_length])
def test_damaged_features_are_computed_again(tmp_path, damage):
    features(images(), Network())
    (cache,) = (tmp_path / "caches").iterdir()
    damage(cache)
    network = Network()
    assert np.array_equal(features(images(), network)[0], EXPECTED)
    assert len(network.asked) == 10


def test_where_nothing_can_be_kept_features_stay_in_memory(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "file"))
    table, done = features(images(), Network())
    assert np.array_equal(table, EXPECTED)
    assert done == [(4, 10), (8, 10), (10, 10)]


def test_features_that_are_cut_while_they_are_read_are_one_line_and_no_signal(tmp_path):
    rows = cached_features(images(), "network", 2, BATCHES, Network(), lambda seen, of: None).rows
    assert np.array_equal(rows(np.array([9, 2])), EXPECTED[[9, 2]])
    (cache,) = (tmp_path / "caches").iterdir()
    with (cache / "images.npy").open("r+b") as file:
        file.truncate(150)
    with pytest.raises(OSError, match="was cut short while it was in use"):
        rows(np.array([9, 2]))
