"""How much memory a function takes at its peak, and the largest tensors that it allocates."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from propos.runner.resource_usage import peak_memory, reset_peak_memory


def peak_growth(function):
    """Return by how many bytes the process's resident memory grew at its peak, and what the function returned."""
    reset_peak_memory()
    before = peak_memory()
    made = function()
    after = peak_memory()
    assert before is not None
    assert after is not None
    return after - before, made


class Allocations(TorchDispatchMode):
    """Notes the number of values of every tensor that an operation makes, but not of views of others."""

    def __init__(self):
        super().__init__()
        self.values = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        given = {id(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)}
        if not func.is_view:
            new = (leaf for leaf in tree_leaves(made) if isinstance(leaf, torch.Tensor) and id(leaf) not in given)
            self.values += [leaf.numel() for leaf in new]
        return made
