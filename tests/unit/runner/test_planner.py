"""Plans: what a run is known by, and that its images are closed."""

import shutil
import sys
from collections import Counter
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from helpers.small import QUICK, digits, save_digits
from propos.common.errors import InputError, Interrupted, RunFailed
from propos.data import find_source, open_source
from propos.runner import Length, Request, SilentReporter, execute_plan, open_run_images, plan, plan_resumed
from propos.runs import Run


def request_of(source, seed=3, labels=None, **settings):
    return Request(
        source=source,
        clusters=10,
        recipe="digits",
        seed=seed,
        labels=labels,
        settings={**QUICK, "train.epochs": 1, **settings},
    )


def hash_of(*arguments, **settings):
    with plan(request_of(*arguments, **settings)) as planned:
        return planned.hash


def workers():
    """Return the processes that this one has started."""
    listings = Path("/proc/self/task").glob("*/children")
    return {number for listing in listings for number in listing.read_text().split()}


OPENED = Counter()  # how often this process opened each image file while it was asked to count
COUNTING = []


def count_open(event, arguments):
    if COUNTING and event == "open" and str(arguments[0]).endswith(".png"):
        OPENED[Path(arguments[0]).name] += 1


@pytest.fixture
def opened():
    """Count the openings of image files, of this process alone: caches are built by others."""
    sys.addaudithook(count_open)  # stays until the process ends
    COUNTING.append(True)
    yield OPENED
    COUNTING.clear()


def test_planning_decodes_no_image_of_its_sample_twice(tmp_path, opened):
    """Grey images stored in colour are asked for colours, then whether they are photographs, then in the mirror."""
    few = load_digits().images[:250]  # too few for an index of the files
    pixels = np.kron(few, np.ones((4, 4))) * 12
    pixels = np.clip(pixels + 20 + np.random.default_rng(0).normal(0, 6, pixels.shape), 0, 255).astype(np.uint8)
    (tmp_path / "scans").mkdir()
    for number, image in enumerate(pixels):
        Image.fromarray(image).convert("RGB").save(tmp_path / "scans" / f"{number:03d}.png")
    opened.clear()
    find_source(tmp_path / "scans")
    looks = Counter(opened)
    opened.clear()
    with plan(Request(source=tmp_path / "scans", clusters=10)) as planned:
        assert planned.config.recipe == "small-grey"
        assert planned.source.channels == 1
    sampled = Counter({name: count - looks[name] for name, count in opened.items()})
    assert len(looks) == 250
    assert sum(sampled.values()) > 200
    assert max(sampled.values()) == 1


def test_a_decision_gives_the_reasons_that_were_reported():
    reporter, notes = SilentReporter(), []
    reporter.note = notes.append
    with plan(Request(source=load_digits().images[:780], clusters=10), reporter=reporter) as planned:
        assert [str(reason) for reason in planned.reasons] == notes
        assert {"recipe", "length", "views"} <= {reason.about for reason in planned.reasons}
        assert planned.reason("recipe").startswith(f"{planned.config.recipe}, chosen for greyscale images of 8×8")


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Forty images too large to be kept."""
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))
    monkeypatch.setenv("PROPOS_CACHE_LIMIT", "1KB")
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, image in enumerate(digits(40).images[..., 0]):
        Image.fromarray(np.kron(image * 15, np.ones((9, 9))).astype(np.uint8)).save(folder / f"{number:02d}.png")
    return folder


@pytest.mark.parametrize(
    ("device", "has_bfloat16", "asked", "precision"),
    [
        ("cpu", True, {}, "float32"),
        ("cuda", True, {}, "bfloat16"),
        ("cuda", False, {}, "float16"),
        ("cuda", True, {"train.precision": "float32"}, "float32"),
    ],
)
def test_recipes_compute_in_half_precision_on_a_gpu(monkeypatch, device, has_bfloat16, asked, precision):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda including_emulation: has_bfloat16)
    with plan(request_of("digits", **asked), device=device) as planned:
        assert planned.config.train.precision == precision
    with plan(Request(source="digits", config=planned.config), device=device) as again:
        assert again.config.train.precision == precision


@pytest.mark.parametrize(
    ("asked", "flip", "said"),
    [
        ({}, 0.0, "Views: horizontal flips disabled:"),
        ({"settings": {"views.flip": 0.3}}, 0.3, None),
        ({"settings": {"views.preset": "greyscale"}}, 0.5, None),
        ({"recipe": "small-grey"}, 0.5, None),
    ],
)
def test_views_follow_the_images_unless_settings_are_given(asked, flip, said):
    reporter, notes = SilentReporter(), []
    reporter.note = notes.append
    with plan(
        Request(source=np.kron(load_digits().images * 15, np.ones((3, 3))), clusters=10, **asked), reporter=reporter
    ) as planned:
        assert planned.config.views.flip == flip
        assert planned.config.recipe == "small-grey"
    assert [note.split(" only ")[0] for note in notes if note.startswith("Views")] == ([said] if said else [])


@pytest.mark.parametrize(
    ("asked", "epochs", "said"),
    [
        ({}, 187, True),  # 100 epochs for 1,800 images: (1,800 / 780)^0.75 times as many
        ({"length": Length(epochs=20)}, 20, False),
        ({"settings": {"train.epochs": 30}}, 30, False),
        ({"recipe": "digits"}, 100, False),
        ({"method": "kmeans-pixels"}, 187, False),
        ({"method": "cc"}, 187, True),  # whose cluster head is as wide as there are clusters
    ],
)
def test_the_length_follows_the_number_of_images_unless_it_is_given(asked, epochs, said):
    reporter, notes = SilentReporter(), []
    reporter.note = notes.append
    with plan(Request(source=load_digits().images[:780], clusters=10, **asked), reporter=reporter) as planned:
        assert planned.config.train.epochs == epochs
    assert [note.split(" (")[0] for note in notes if note.startswith("Length")] == [
        "Length: 187 epochs, by the number of images"
    ] * said


def test_more_than_ten_clusters_train_longer_and_the_run_says_so():
    reporter, notes = SilentReporter(), []
    reporter.note = notes.append
    with plan(Request(source=load_digits().images[:780], clusters=40), reporter=reporter) as planned:
        assert planned.config.train.epochs == 374  # twice 187.2
    assert [note.split(" (")[0] for note in notes if note.startswith("Length")] == [
        "Length: 374 epochs, by the numbers of images and clusters"
    ]


def test_a_run_is_known_by_its_images_and_settings_wherever_they_lie(tmp_path):
    here, there = save_digits(tmp_path / "here.npz"), tmp_path / "elsewhere" / "here.npz"
    there.parent.mkdir()
    shutil.copy(here, there)
    known = hash_of(here)
    assert hash_of(there) == known
    assert hash_of(str(here), 3, None) == known
    assert len({known, hash_of(here, seed=4), hash_of(here, **{"propos.psl_weight": 0.3})}) == 3
    save_digits(there, count=199)
    assert hash_of(there) != known


def test_pixel_settings_of_other_images_are_replaced(tmp_path):
    """Of --config's images is known what black and white mean and their mean; of other images it is not."""
    with plan(request_of(digits().images[..., 0] / 16)) as first:
        given = first.config
    asked = {"pixels.white": 8.0, "pixels.mean": (0.25,), "pixels.std": (0.5,)}
    np.save(tmp_path / "other.npy", digits().images[..., 0].astype(np.float32))
    with plan(
        Request(source=str(tmp_path / "other.npy"), clusters=10, config=given, settings={**asked, "pixels.black": 0.0})
    ) as other:
        pixels = other.config.pixels
    assert (pixels.black, pixels.white, pixels.mean, pixels.std) == (0.0, 8.0, (0.25,), (0.5,))
    with plan(
        Request(source=str(tmp_path / "other.npy"), clusters=10, config=given, settings={"pixels.mean": (0.25,)})
    ) as other:
        pixels = other.config.pixels
    assert (pixels.white, pixels.mean) == (digits().images.max(), (0.25,))


def test_other_labels_are_another_run():
    images, labels = digits().images[..., 0], digits().labels
    assert len({hash_of(images), hash_of(images, labels=labels), hash_of(images, labels=labels[::-1])}) == 3


def test_a_plan_stops_decoding_when_it_ends_and_when_it_cannot_be_made(photos):
    before = workers()
    with plan(request_of(photos)) as planned:
        planned.source.batch(np.arange(4))
        assert workers() > before
    assert workers() == before
    with pytest.raises(InputError, match="only 40 images"):
        plan(Request(source=photos, clusters=41, recipe="digits"))
    assert workers() == before


def test_a_run_of_images_in_memory_resumes_when_they_are_given_again(tmp_path):
    images = digits().images[..., 0]
    asked = iter([False, False, True])
    with plan(request_of(images)) as planned, pytest.raises(Interrupted):
        execute_plan(planned, tmp_path / "run", stopping=lambda: nullcontext(lambda: next(asked)))
    run = Run.open(tmp_path / "run")
    with pytest.raises(InputError, match="array in memory"):
        plan_resumed(run)
    with pytest.raises(InputError, match="not those the run started with"):
        plan_resumed(run, what=images[::-1])
    with plan_resumed(run, what=images) as planned:
        execute_plan(planned, run.path)
    assert Run.open(run.path).finished


@pytest.mark.parametrize(
    ("method", "advice"),
    [("propos", "start a new run with a smaller batch"), ("kmeans-pixels", "close other programs, or use a machine")],
)
def test_where_memory_ran_out_a_smaller_batch_is_advised_only_for_training(tmp_path, method, advice):
    @contextmanager
    def full():
        raise MemoryError
        yield

    asked = Request(source=digits().images[..., 0], clusters=10, method=method)
    with plan(asked) as planned, pytest.raises(RunFailed, match=f"^out of memory: {advice}"):
        execute_plan(planned, tmp_path / "run", stopping=full)


def test_a_runs_own_images_are_read_with_its_pixels_labels_and_channels(tmp_path):
    floats = digits().images[..., 0] / 16.0 - 0.5
    np.savez(tmp_path / "images.npz", images=floats, labels=digits().labels)
    with plan(request_of(tmp_path / "images.npz")) as planned:
        execute_plan(planned, tmp_path / "run")
    with open_run_images(Run.open(tmp_path / "run")) as again:
        assert (again.black, again.white) == (-0.5, floats.max())
        assert np.array_equal(again.labels, digits().labels)
        assert np.array_equal(again.batch(np.arange(200)), open_source(floats).batch(np.arange(200)))


def test_a_folder_that_cannot_be_kept_any_more_is_not_called_changed(photos, tmp_path, monkeypatch):
    damaged = photos / "07.png"
    damaged.write_bytes(damaged.read_bytes()[:80])
    with monkeypatch.context() as roomy:
        roomy.delenv("PROPOS_CACHE_LIMIT")
        with plan(request_of(photos)) as planned:
            execute_plan(planned, tmp_path / "run")
    shutil.rmtree(tmp_path / "caches")
    run = Run.open(tmp_path / "run")
    with open_run_images(run) as source:  # streamed now, without the damaged image
        assert list(source.image_names()) == list(run.table.images)
        assert len(source) == 39
