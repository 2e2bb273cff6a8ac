"""Training and embedding on a stand-in GPU: no step waits, and the losses in single precision are the CPU's."""

import numpy as np
import pytest
import torch

from helpers.gpu import GPU, standing_in
from helpers.methods import TRAINED
from helpers.small import CPU, digits, quick_config
from propos.data import Source
from propos.methods import stages_of
from propos.training.embedding import embed_batches, method_output_batches
from propos.training.estimate import late_state
from propos.training.learner import at_stage, build_learner
from propos.training.m_step import m_step
from propos.training.prefetch import reading_ahead
from propos.training.stage_setup import begin_epoch

SIZE = 32
# `make test` takes ProPos; every method's step runs on the meta device there.
EVERY_STAGE = [
    pytest.param(method, number, id=f"{method} {number}", marks=[] if method == "propos" else pytest.mark.full)
    for method in TRAINED
    for number in range(len(stages_of(quick_config(method=method))))
]


@pytest.fixture
def gpu():
    with standing_in() as gpu:
        yield gpu


def learner_on(device, source: Source, number=0, **settings):
    config = quick_config(source, **{"train__batch_size": SIZE, **settings})
    return at_stage(build_learner(config, source, device), number)


def begun(learner, source):
    """Return a state in the learner's stage, with the tables that it needs."""
    state = late_state(learner)
    if learner.stage.tables_every is not None:
        state.epoch = learner.epochs.start
        begin_epoch(learner, source, state)
    return state


def step(learner, source, state, first=0):
    positions = torch.arange(first, first + SIZE * learner.schedule.accumulate)
    return m_step(learner, source, positions, state)


@pytest.mark.parametrize(("method", "number"), EVERY_STAGE)
def test_two_steps_have_the_cpus_losses_and_the_second_does_not_wait(gpu, method, number):
    losses = {}
    for device in (CPU, GPU):
        source = digits()
        learner = learner_on(device, source, number, method=method)
        state = begun(learner, source)
        with reading_ahead(source, device) as ahead:
            step(learner, ahead, state)
            gpu.waits.clear()
            made = step(learner, ahead, state, SIZE)
            assert gpu.waits == []
        losses[device] = {name: float(loss) for name, loss in made.items()}
    assert losses[GPU] == pytest.approx(losses[CPU], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(("device", "threads"), [(CPU, 2), (GPU, 4)], ids=["cpu", "gpu"])
def test_a_step_halves_the_hosts_threads_only_where_the_cpu_passes_networks(gpu, device, threads):
    source, seen, before = digits(), [], torch.get_num_threads()
    learner = learner_on(device, source)
    learner.method.online.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
    torch.set_num_threads(4)
    try:
        step(learner, source, begun(learner, source))
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {threads}


@pytest.mark.full
@pytest.mark.parametrize(("method", "number"), EVERY_STAGE)
def test_a_step_in_half_precision_is_finite(gpu, method, number):
    source = digits()
    learner = learner_on(GPU, source, number, method=method, train__precision="bfloat16")
    losses = step(learner, source, begun(learner, source))
    assert all(np.isfinite(float(loss)) for loss in losses.values())


@pytest.mark.parametrize(
    "settings",
    [
        {"train__optimiser": "adamw", "train__accumulate": 2},
        {"train__optimiser": "lars", "network__bn_groups": 2, "network__shuffle_bn": True},
        pytest.param({"train__precision": "float16"}, marks=pytest.mark.full),
        pytest.param({"train__recompute": True, "network__joint_views": True}, marks=pytest.mark.full),
    ],
    ids=str,
)
def test_other_settings_pass_a_step(gpu, settings):
    source = digits()
    learner = learner_on(GPU, source, **settings)
    state = begun(learner, source)
    before = {name: value.cpu() for name, value in learner.method.state_dict().items()}
    losses = step(learner, source, state)
    assert np.isfinite(float(losses["total"] if "total" in losses else next(iter(losses.values()))))
    after = {name: value.cpu() for name, value in learner.method.state_dict().items()}
    assert any(not torch.equal(after[name], before[name]) for name in before)


def test_embedding_does_not_wait_and_is_the_cpus_to_the_bit(gpu):
    there, here = (learner_on(device, digits()) for device in (CPU, GPU))
    expected = torch.cat(list(embed_batches(there.method.embedder, digits(70), there.config)))
    list(embed_batches(here.method.embedder, digits(70), here.config))
    gpu.waits.clear()
    batches = list(embed_batches(here.method.embedder, digits(70), here.config))
    list(method_output_batches(here.method, digits(70), here.config))
    assert gpu.waits == []
    assert torch.equal(torch.cat(batches).cpu(), expected)
