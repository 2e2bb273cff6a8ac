"""What methods keep between steps."""

import torch
import torch.nn.functional as F

from propos.networks import Bank, Memory, Neighbours, Queue, labels_of


def rows(*values):
    """Return vectors of the plane in directions that differ."""
    return torch.stack([torch.tensor([1.0, value]) for value in values])


def test_the_queue_is_a_ring_that_forgets_the_oldest():
    queue = Queue(5, 2, images=100)
    queue.push(rows(1, 2, 3), torch.tensor([10, 11, 12]))
    assert queue["images"].tolist() == [10, 11, 12, -1, -1]
    queue.push(rows(4, 5, 6), torch.tensor([13, 14, 15]))
    assert queue["images"].tolist() == [15, 11, 12, 13, 14]
    torch.testing.assert_close(queue["vectors"], F.normalize(rows(6, 2, 3, 4, 5), dim=1))
    queue.push(rows(7), torch.tensor([16]))
    assert queue["images"].tolist() == [15, 16, 12, 13, 14]


def test_of_more_than_it_holds_the_queue_keeps_the_last():
    queue = Queue(2, 2, images=100)
    queue.push(rows(1, 2, 3), torch.tensor([10, 11, 12]))
    assert sorted(queue["images"].tolist()) == [11, 12]


def test_entries_have_the_present_labels_of_their_images():
    queue = Queue(4, 2, images=100)
    queue.push(rows(1, 2, 3), torch.tensor([2, 0, 9]))
    assert queue.labels(torch.tensor([5, 6, 7])).tolist() == [7, 5, -1, -1]
    assert queue.labels(torch.tensor([1, 1, 3])).tolist() == [3, 1, -1, -1]


def test_a_queue_of_negatives_starts_as_random_directions_of_the_seed():
    first, again, other = (Queue(50, 8, 9, torch.Generator().manual_seed(seed))["vectors"] for seed in (0, 0, 1))
    torch.testing.assert_close(first, F.normalize(first, dim=1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert Queue(3, 8, 9)["vectors"].abs().sum() == 0


def test_positions_outside_the_labels_have_none():
    assert labels_of(torch.tensor([1, -1, 2, 0]), torch.tensor([4, 5])).tolist() == [5, -1, -1, 4]


def test_a_bank_moves_the_rows_of_the_batch_and_no_others():
    bank = Bank(4, 2, momentum=0.25, draw=torch.Generator().manual_seed(0))
    before = bank["vectors"].clone()
    bank.move(torch.tensor([2]), torch.tensor([[0.6, 0.8]]))
    expected = 0.25 * before[2] + 0.75 * torch.tensor([0.6, 0.8])
    torch.testing.assert_close(bank["vectors"][2], expected / expected.norm())
    assert torch.equal(bank["vectors"][[0, 1, 3]], before[[0, 1, 3]])


def test_the_hosts_copy_of_neighbours_follows_the_table():
    neighbours = Neighbours(3)
    for table in (torch.tensor([[1], [2], [0]]), torch.tensor([[2], [0], [1]])):
        neighbours["table"] = table
        assert torch.equal(neighbours.host(), table)
        assert neighbours.host() is neighbours.host()


def test_what_a_checkpoint_brings_must_fit():
    memory = Memory({"labels": 3}, vectors=torch.zeros(2, 4))
    assert memory.fits("vectors", torch.ones(2, 4))
    assert not memory.fits("vectors", torch.ones(2, 5))
    assert not memory.fits("vectors", torch.ones(2, 4).double())
    assert memory.fits("labels", torch.tensor([-1, 0, 2]))
    for other in (torch.tensor([3]), torch.tensor([-2]), torch.tensor([0.5])):
        assert not memory.fits("labels", other)
    assert memory.fits("any other table", torch.ones(1))
