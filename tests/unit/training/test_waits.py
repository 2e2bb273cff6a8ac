"""A step and a batch of an E-step ask nothing of an accelerator that the host would have to wait for.

They run on torch's meta device, which has shapes and no numbers: whatever needs a number fails there by itself.
"""

import pytest
import torch

from helpers import two_stages
from helpers.awkward import picture
from helpers.methods import REPRESENTATIVE, TRAINED
from helpers.small import CPU, digits, quick_config
from helpers.waiting import META, Waits
from propos.data import from_array, open_folder
from propos.methods import stages_of
from propos.networks import Memory, Neighbours
from propos.training.embedding import embed_batches, method_output_batches
from propos.training.estimate import late_state
from propos.training.learner import at_stage, build_learner
from propos.training.m_step import m_step
from propos.training.stage_setup import begin_epoch

SHUFFLED = {"network__bn_groups": 2, "network__shuffle_bn": True}
EVERYTHING = {
    **SHUFFLED,
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
    "a queue of prototypes": {"queue_size": 96},
}
LATER = [(method, number) for method in TRAINED for number in range(1, len(stages_of(quick_config(method=method))))]


def marked(case, quick):
    """Return a case as a parameter; only `make test-all` takes it unless it is quick."""
    return pytest.param(*case, marks=[] if quick else pytest.mark.full)


def is_quick(name):
    """`make test` takes all variants of ProPos, and of the other representative methods the one with everything."""
    method, _, variant = name.partition(" ")
    return method == "propos" or (method in REPRESENTATIVE and variant == "with everything")


# What a step of the first stage sends to the device: the positions, the images and the draws of two random views.
SENT = 3
# And in some methods more: noise, an order for batch norm, the images of a plain view; a third view; a strong one.
MORE_SENT = {
    **dict.fromkeys(["propos", "propos-alignment-only", "propos-no-psl", "propos-uniformity-only", "dcboost"], 1),
    **dict.fromkeys(["moco", "pcl", "spice", "dccm", "dec", "idec", "iic", "pica"], 1),
    **dict.fromkeys(["moco-v1", "ifnd", "jigsaw", "pirl", "tcc", "cdc", "cpc", "lfss"], 1),
    "mice": 2,
    "tcl": 41,
}


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


@pytest.mark.parametrize("case", [marked([name], is_quick(name)) for name in CASES])
def test_no_step_waits(case):
    learner = learner_on_meta(**CASES[case])
    found = watched_step(learner, digits(), opened(learner))
    assert found.waits == []
    assert found.unrepeatable == []
    if case.endswith("as it is"):
        assert len(found.sent) == SENT + MORE_SENT.get(case.partition(" ")[0], 0)


def test_a_step_of_propos_with_everything_sends_little():
    """Further draws of blur and solarisation, noise, an order for batch norm, and which embeddings are known."""
    learner = learner_on_meta(**EVERYTHING)
    assert len(watched_step(learner, digits()).sent) == SENT + 6


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
    encoder = learner.method.embedder
    watched_step(learner, source)
    list(embed_batches(encoder, source, learner.config))
    assert watched_step(learner, source).waits == []
    with Waits() as found:
        list(embed_batches(encoder, source, learner.config))
    assert found.waits == []


def opened(learner):
    """Return a state in the learner's stage, whose tables are those that the stage computes on a CPU, made empty."""
    state = state_of(learner)
    if learner.stage.tables_every is None:
        return state
    source = digits()
    real = at_stage(build_learner(learner.config, source, CPU), learner.number)
    begun = late_state(real)
    begun.epoch = real.epochs.start
    begin_epoch(real, source, begun)
    ours = dict(learner.method.named_modules())
    for name, module in real.method.named_modules():
        if isinstance(module, Memory):
            for table, values in module.named_buffers(recurse=False):
                ours[name][table] = torch.empty_like(values, device=META)
        if isinstance(module, Neighbours) and "table" in module:
            ours[name]._host = ours[name]["table"], module["table"]
    return state


@pytest.mark.parametrize("number", [0, 1])
def test_no_step_of_a_later_stage_waits(number):
    two_stages.register()
    try:
        learner = at_stage(learner_on_meta(**two_stages.QUICK), number)
        state = opened(learner)
    finally:
        two_stages.unregister()
    assert watched_step(learner, digits(), state).waits == []


@pytest.mark.parametrize(("method", "number"), [marked(case, case[0] in REPRESENTATIVE) for case in LATER])
def test_no_step_of_a_methods_later_stage_waits(method, number):
    learner = at_stage(learner_on_meta(method=method), number)
    watched_step(learner, digits(), opened(learner))
    found = watched_step(learner, digits(), opened(learner))
    assert found.waits == []
    assert found.unrepeatable == []


@pytest.mark.parametrize(("method", "side"), [("propos", 8), ("propos", 6), ("cc", 8), ("simsiam", 8)])
def test_no_batch_of_an_e_step_waits(method, side):
    learner = learner_on_meta(method=method, views__size=side)
    encoder, source = learner.method.embedder, digits(70)
    list(embed_batches(encoder, source, learner.config))
    with Waits() as found:
        list(embed_batches(encoder, source, learner.config))
        list(method_output_batches(learner.method, source, learner.config))
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
