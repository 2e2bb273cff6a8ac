"""Dot products by oneDNN are those of numpy, and do not depend on threads or on the rows beside them."""

import numpy as np
import pytest
import torch

from propos.clustering import products
from propos.clustering.products import dot_products


def rows(count, dimension, seed):
    return torch.randn(count, dimension, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("count", "others", "dimension"), [(700, 10, 256), (33, 100, 7), (1, 1, 1), (0, 5, 4), (5, 0, 4)]
)
def test_they_are_numpys(dtype, count, others, dimension):
    first, second = rows(count, dimension, 0).to(dtype), rows(others, dimension, 1).to(dtype)
    found = dot_products(first, second)
    assert found.dtype == dtype
    expected = first.double().numpy() @ second.double().numpy().T
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-4 if dtype == torch.float32 else 1e-12)


def test_rows_that_do_not_lie_one_behind_the_other_count_the_same():
    first, second = rows(64, 40, 0), rows(12, 40, 1)
    expected = dot_products(first, second)
    assert torch.equal(dot_products(first.T.contiguous().T, second.T.contiguous().T), expected)
    assert torch.equal(dot_products(first[::2], second), expected[::2])


def test_neither_threads_nor_the_rows_of_a_chunk_change_a_bit():
    first, second = rows(3000, 256, 0), rows(100, 256, 1)
    expected = dot_products(first, second)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            assert torch.equal(dot_products(first, second), expected)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(torch.cat([dot_products(part, second) for part in first.split(700)]), expected)


def test_a_torch_without_the_operator_multiplies_in_its_own_way(monkeypatch):
    first, second = rows(20, 6, 0), rows(4, 6, 1)
    monkeypatch.setattr(products, "_has_onednn", lambda: False)
    monkeypatch.setattr(products, "_by_onednn", None)
    assert torch.equal(dot_products(first, second), first @ second.T)
