import math

import pytest

from propos.config import NetworkSettings, TrainSettings
from propos.training.schedule import Schedule


def schedule(images=1000, network=None, **settings):
    return Schedule(TrainSettings(**settings), NetworkSettings(**(network or {})), images)


def test_the_incomplete_last_batch_is_dropped():
    assert schedule(images=1000, batch_size=256).steps == 3


def test_with_fewer_images_than_a_batch_the_batch_is_all_of_them():
    plan = schedule(images=100, batch_size=256)
    assert (plan.batch, plan.steps) == (100, 1)


def test_accumulation_takes_several_batches_a_step():
    plan = schedule(images=1000, batch_size=100, accumulate=4)
    assert (plan.batch, plan.accumulate, plan.steps) == (100, 4, 2)
    assert schedule(images=250, batch_size=100, accumulate=4).accumulate == 2


def test_the_rate_scales_with_all_images_of_a_step():
    # Ten steps of warm-up: the last of them reaches the peak of 0.05 · 4 · 64 / 256.
    plan = schedule(images=2560, batch_size=64, accumulate=4, lr=0.05, warmup=1, epochs=10)
    assert plan.steps == 10
    assert plan.learning_rate(9) == pytest.approx(0.05)
    assert plan.learning_rate(0) == pytest.approx(0.005)


def test_the_rate_falls_along_a_cosine_to_zero_at_the_last_step():
    plan = schedule(images=2560, batch_size=256, lr=0.05, warmup=2, epochs=12)
    assert plan.learning_rate(20 + 50 - 1) == pytest.approx(0.025)
    assert plan.learning_rate(119) == pytest.approx(0, abs=1e-12)
    rates = [plan.learning_rate(step) for step in range(20, 120)]
    assert rates == sorted(rates, reverse=True)


def test_a_cosine_of_all_epochs_stops_short_of_zero():
    """As released: half of (1 + cos π(e − w)/E), e the epochs done after the step."""
    plan = schedule(images=2560, batch_size=256, lr=0.05, warmup=2, epochs=12, schedule="cosine-of-all")
    assert plan.learning_rate(9) == pytest.approx(0.025)  # half of the warm-up
    assert plan.learning_rate(20 + 60 - 1) == pytest.approx(0.025)  # six of twelve epochs after it
    assert plan.learning_rate(119) == pytest.approx(0.05 * (1 + math.cos(math.pi * 10 / 12)) / 2)


def test_a_cosine_by_epoch_has_one_rate_an_epoch_and_a_warm_up_that_rises_to_it():
    """As released for ResNet-34: half of (1 + cos πe/E), e the number of the epoch."""
    plan = schedule(images=2560, batch_size=256, lr=0.05, warmup=3, epochs=12, schedule="cosine-by-epoch")
    reached = 0.05 * (1 + math.cos(math.pi * 3 / 12)) / 2
    assert plan.learning_rate(14) == pytest.approx(reached / 2)
    assert plan.learning_rate(29) == pytest.approx(reached)
    assert [plan.learning_rate(step) for step in range(60, 70)] == [pytest.approx(0.025)] * 10
    assert plan.learning_rate(119) == pytest.approx(0.05 * (1 + math.cos(math.pi * 11 / 12)) / 2)


def test_without_warm_up_the_rate_starts_at_its_peak():
    assert schedule(images=25600, batch_size=256, lr=0.05, warmup=0, epochs=100).learning_rate(0) == pytest.approx(
        0.05, rel=1e-4
    )


def test_momentum_is_constant_or_rises_to_one():
    assert schedule().momentum(10_000) == 0.996
    plan = schedule(images=256, batch_size=256, epochs=100, network={"momentum": 0.99, "momentum_schedule": "cosine"})
    assert plan.momentum(0) == pytest.approx(0.99)
    assert plan.momentum(50) == pytest.approx(1 - 0.01 * (math.cos(math.pi / 2) + 1) / 2)
    assert plan.momentum(100) == pytest.approx(1.0)


def test_a_tenth_of_the_rate_is_left_from_each_milestone_on():
    plan = schedule(
        images=2560, batch_size=256, lr=0.03, warmup=0, epochs=20, schedule="steps", milestones=(0.3, 0.475)
    )
    # Of 200 steps the 60th and the 95th.
    rates = [plan.learning_rate(step) for step in (0, 59, 60, 94, 95, 199)]
    assert rates == pytest.approx([0.03, 0.03, 0.003, 0.003, 0.0003, 0.0003])
