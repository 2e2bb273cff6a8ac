"""A step and a batch of an E-step ask nothing of an accelerator that the host would have to wait for.

They run on torch's meta device, which has shapes and no numbers: whatever needs a number fails there by itself.
"""

import pytest
import torch

from helpers import two_stages
from helpers.awkward import picture
from helpers.small import digits, quick_config
from helpers.waiting import META, Waits
from propos.data import from_array, open_folder
from propos.methods import METHODS, build_method
from propos.training.embedding import embed_batches, see_batches
from propos.training.estimate import late_state
from propos.training.learner import at_stage, build_learner
from propos.training.m_step import m_step

TRAINED = [name for name in METHODS if not name.startswith("kmeans")]
SHUFFLED = {"network__bn_groups": 2, "network__shuffle_bn": True}
EVERYTHING = {
    **SHUFFLED,
    "queue__size": 96,
    "views__blur": (1.0, 0.1),
    "views__solarise": (0.0, 0.2),
    "views__rotation": 0.0,
    "estep__embeddings": "streamed",
    "train__optimiser": "lars",
    "train__decay_norms": False,
}
VARIANTS = {
    "as it is": {},
    "with everything": EVERYTHING,
    "views together in shuffled groups": {"network__joint_views": True, **SHUFFLED},
    "accumulated, with Adam": {"train__accumulate": 2, "train__optimiser": "adam"},
}
CASES = {
    **{f"{method} {name}": {"method": method, **settings} for method in TRAINED for name, settings in VARIANTS.items()},
    "blocks that pass again": {"train__recompute": True},
    "views together": {"network__joint_views": True},
}
LATER = [
    (method, number) for method in TRAINED for number in range(1, len(build_method(quick_config(method=method)).stages))
]
# Positions, images, ten kinds of draws, noise, an order for batch norm, lists of the blurred, solarised and known.
MOST_SENT = 18
# A strong view sends its images once more, and of each of four turns of operations whom each kind changes, and how.
MOST_SENT_STRONG = 72


def learner_on_meta(source=None, **settings):
    source = source or digits()
    return build_learner(quick_config(source, **{"train__batch_size": 32, **settings}), source, META)


def state_of(learner):
    state = late_state(learner)
    if learner.config.estep.embeddings == "streamed":
        state.streamed = torch.zeros(learner.schedule.images, learner.dimension, device=META)
    return state


def watched_step(learner, source, state=None):
    """Return what a step asks of the device."""
    positions, state = torch.arange(32 * learner.schedule.accumulate), state or state_of(learner)
    with Waits() as found:
        m_step(learner, source, positions, state)
    return found


@pytest.fixture(scope="module", autouse=True)
def _constants():
    """Have a step put its constants where they stay."""
    watched_step(learner_on_meta(), digits())


def test_every_method_is_tried_in_every_variant():
    assert len(TRAINED) >= 15
    assert len(CASES) == len(TRAINED) * 4 + 2


@pytest.mark.parametrize("case", CASES)
def test_no_step_waits(case):
    learner = learner_on_meta(**CASES[case])
    found = watched_step(learner, digits())
    assert found.waits == []
    assert found.unrepeatable == []
    pairs = learner.stage.pairs
    strong, again = "strong" in (pairs.first, pairs.second), pairs.again == "random"
    most = (1 + again) * MOST_SENT + strong * MOST_SENT_STRONG
    assert len(found.sent) <= most * learner.schedule.accumulate


def test_no_step_of_colour_images_waits():
    pixels = torch.randint(256, (64, 12, 10, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    source = from_array(pixels.numpy(), list(range(8)) * 8)
    learner = learner_on_meta(source, views__preset="natural", views__size=8)
    watched_step(learner, source)
    assert watched_step(learner, source).waits == []


def test_nothing_waits_for_photographs_in_their_shape_with_the_papers_colours(tmp_path, monkeypatch):
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))
    (tmp_path / "photos").mkdir()
    for number in range(40):
        picture(*((90, 70) if number % 2 else (70, 90)), 3, seed=number).save(tmp_path / "photos" / f"{number:02d}.png")
    source = open_folder(tmp_path / "photos", 64, workers=0, shaped=True)
    views = {"preset": "natural", "size": 16, "keep": "shapes", "plain": "centre", "colours": "in-turn"}
    learner = learner_on_meta(source, clusters=4, **{f"views__{key}": value for key, value in views.items()})
    encoder = learner.network.encoder(learner.method.embeds)
    watched_step(learner, source)
    list(embed_batches(encoder, source, learner.config))
    assert watched_step(learner, source).waits == []
    with Waits() as found:
        list(embed_batches(encoder, source, learner.config))
    assert found.waits == []


def opened(learner):
    """Return a state in the learner's stage with what it computes when it opens, made up."""
    state = state_of(learner)
    heads = learner.method.parts.heads, learner.config.clusters
    tables = {
        "labels": torch.zeros(200, dtype=torch.int64, device=META),
        "neighbours": torch.zeros(200, 5, dtype=torch.int64, device=META),
        "neighbour weights": torch.zeros(200, 5, device=META),
    }
    for preparation in learner.stage.opens_with:
        some = torch.zeros(200, 5, dtype=torch.int64, device=META)
        state.prepared[preparation.name] = tables.get(preparation.name, some)
    for preparation in learner.stage.refreshes:
        answers = torch.zeros(200, *heads, device=META)
        state.prepared[preparation.name] = tables.get(preparation.name, answers)
    if "features" in state.prepared:
        state.prepared["features"] = torch.zeros(200, learner.network.online.features, device=META)
    state.neighbours = torch.zeros(200, 5, dtype=torch.int64)
    return state


@pytest.mark.parametrize("number", [0, 1])
def test_no_step_of_a_later_stage_waits(number):
    two_stages.register()
    try:
        learner = at_stage(learner_on_meta(**two_stages.QUICK), number)
    finally:
        two_stages.unregister()
    assert watched_step(learner, digits(), opened(learner)).waits == []


@pytest.mark.parametrize(("method", "number"), LATER)
def test_no_step_of_a_methods_later_stage_waits(method, number):
    learner = at_stage(learner_on_meta(method=method), number)
    watched_step(learner, digits(), opened(learner))
    found = watched_step(learner, digits(), opened(learner))
    assert found.waits == []
    assert found.unrepeatable == []


@pytest.mark.parametrize(("method", "side"), [("propos", 8), ("propos", 6), ("cc", 8), ("simsiam", 8)])
def test_no_batch_of_an_e_step_waits(method, side):
    learner = learner_on_meta(method=method, views__size=side)
    encoder, source = learner.network.encoder(learner.method.embeds), digits(70)
    list(embed_batches(encoder, source, learner.config))
    with Waits() as found:
        list(embed_batches(encoder, source, learner.config))
        list(see_batches(learner.network, learner.method.embeds, source, learner.config))
    assert found.waits == []
    assert len(found.sent) == 2


WAITING = {
    "a number": lambda x: x.sum().item(),
    "places": lambda x: x.nonzero(),
    "a choice by a mask": lambda x: x[x > 0],
    "filling by a mask": lambda x: x.index_put_((x > 0,), torch.ones((), device=META)),
    "different values": lambda x: x.unique(),
    "a constant": lambda x: x * torch.tensor([1.0, 2.0, 3.0], device=META),
    "a table sent and waited for": lambda x: x + torch.ones(3).to(META),
    "a result fetched": lambda x: x.cpu(),
    "repeats of unknown length": lambda x: x.repeat_interleave(x.long()),
}


@pytest.mark.parametrize("kind", WAITING)
def test_what_waits_is_noticed(kind):
    x = torch.zeros(3, device=META)
    try:
        with Waits() as found:
            WAITING[kind](x)
    except (NotImplementedError, RuntimeError):
        pass  # meta has no numbers to give
    assert found.waits
