import torch
import torch.nn.functional as F

from helpers.small import CPU
from propos.methods import QueueSpec
from propos.training.queue import Memory, labels_of


def rows(*values):
    return torch.tensor(values, dtype=torch.float32)[:, None]


def test_the_queue_is_a_ring_that_forgets_the_oldest():
    memory = Memory.start(QueueSpec(5), dimension=1, seed=0, device=CPU)
    memory.push(rows(1, 2, 3), torch.tensor([10, 11, 12]))
    assert memory.images.tolist() == [10, 11, 12, -1, -1]
    memory.push(rows(4, 5, 6), torch.tensor([13, 14, 15]))
    assert memory.images.tolist() == [15, 11, 12, 13, 14]
    assert memory.embeddings[:, 0].tolist() == [6, 2, 3, 4, 5]
    memory.push(rows(7), torch.tensor([16]))
    assert memory.images.tolist() == [15, 16, 12, 13, 14]


def test_of_more_than_it_holds_the_queue_keeps_the_last():
    memory = Memory.start(QueueSpec(2), dimension=1, seed=0, device=CPU)
    memory.push(rows(1, 2, 3), torch.tensor([10, 11, 12]))
    assert sorted(memory.images.tolist()) == [11, 12]


def test_entries_carry_the_present_labels_of_their_images():
    memory = Memory.start(QueueSpec(4), dimension=1, seed=0, device=CPU)
    memory.push(rows(1, 2, 3), torch.tensor([2, 0, 9]))
    assert memory.entries(torch.tensor([5, 6, 7])).labels.tolist() == [7, 5, -1, -1]
    assert memory.entries(torch.tensor([1, 1, 3])).labels.tolist() == [3, 1, -1, -1]


def test_a_queue_of_negatives_starts_as_random_directions_of_the_seed():
    first, again, other = (Memory.start(QueueSpec(50, True), 8, seed, CPU).embeddings for seed in (0, 0, 1))
    torch.testing.assert_close(first, F.normalize(first, dim=1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert Memory.start(QueueSpec(3), 8, 0, CPU).embeddings.abs().sum() == 0


def test_positions_outside_the_labels_have_none():
    assert labels_of(torch.tensor([1, -1, 2, 0]), torch.tensor([4, 5])).tolist() == [5, -1, -1, 4]
