"""Batches are read by another thread before they are asked for, and are those that would have been read."""

import threading

import numpy as np
import pytest
import torch

from helpers.hold import PATIENCE
from helpers.small import CPU, digits, quick_config, quick_train
from helpers.together import Recording
from propos.data import from_array, prefetch
from propos.data.arrays import ArraySource
from propos.training.embedding import output_batches
from propos.training.prefetch import AHEAD, read, reading_ahead

ORDER = np.random.default_rng(0).permutation(40).reshape(8, 5)


class Gated(Recording):
    """A source that reads a batch when it is let, and tells when it has begun to."""

    def __init__(self, source):
        super().__init__(source)
        self.let, self.begun = threading.Semaphore(0), threading.Semaphore(0)

    def batch(self, positions):
        self.begun.release()
        assert self.let.acquire(timeout=PATIENCE)
        return super().batch(positions)


def test_what_is_announced_is_read_while_nobody_asks():
    source = Gated(digits(40))
    with reading_ahead(source, CPU) as ahead:
        prefetch(ahead, ORDER)
        for _ in range(AHEAD):
            assert source.begun.acquire(timeout=PATIENCE)
            source.let.release()
        # The thread is as far ahead as it goes, and nothing was asked for.
        assert not source.begun.acquire(timeout=0.05)
        first = read(ahead, ORDER[0], CPU)
        assert source.begun.acquire(timeout=PATIENCE)  # a place is free: the next is read
        source.let.release()
        assert torch.equal(first, torch.from_numpy(digits(40).batch(ORDER[0])))
    assert [asked.tolist() for asked in source.asked] == ORDER[: AHEAD + 1].tolist()


def test_batches_are_the_requested_ones_announced_or_not():
    plain = digits(40)
    with reading_ahead(Recording(plain), CPU) as ahead:
        prefetch(ahead, ORDER)
        for positions in (ORDER[0], ORDER[3], np.array([7, 7, 1]), ORDER[1], ORDER[2]):
            assert torch.equal(read(ahead, positions, CPU), torch.from_numpy(plain.batch(positions)))
        prefetch(ahead, ORDER[::-1])
        for positions in ORDER[::-1]:
            assert torch.equal(read(ahead, positions, CPU), torch.from_numpy(plain.batch(positions)))


def test_a_run_reads_each_batch_once():
    plain, ahead = Recording(digits()), Recording(digits())
    list(output_batches(torch.nn.Identity(), CPU, plain, quick_config()))
    assert np.concatenate(plain.asked).tolist() == list(range(200))
    quick_train(ahead, train__epochs=1)
    # An E-step, an epoch of three steps, the last E-step.
    assert [len(asked) for asked in ahead.asked[-5:]] == [200, 64, 64, 64, 200]


def test_positions_past_the_clustered_are_the_unlabelled():
    more = from_array(np.full((6, 8, 8), 9, np.uint8))
    source = ArraySource(digits(10).images, None, "digits")
    source.unlabelled = more
    with reading_ahead(source, CPU) as ahead:
        prefetch(ahead, np.array([[10, 15], [0, 9]]))
        assert bool((read(ahead, np.array([10, 15]), CPU) == 9).all())
        assert torch.equal(read(ahead, np.array([0, 9]), CPU), torch.from_numpy(source.batch(np.array([0, 9]))))


def test_a_reading_error_is_raised_where_the_batch_is_requested():
    class Broken(Recording):
        def batch(self, positions):
            raise OSError("the disk is gone")

    with reading_ahead(Broken(digits(40)), CPU) as ahead:
        prefetch(ahead, ORDER)
        with pytest.raises(OSError, match="the disk is gone"):
            read(ahead, ORDER[0], CPU)


def test_no_thread_is_left_when_the_block_ends():
    before = threading.active_count()
    with reading_ahead(digits(40), CPU) as ahead:
        prefetch(ahead, ORDER)
        with reading_ahead(ahead, CPU) as again:
            assert again is ahead
        read(ahead, ORDER[0], CPU)
    assert threading.active_count() == before
