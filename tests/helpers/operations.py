"""A count of the operations that a step asks of a device, by the meta device, which computes nothing."""

from collections import Counter
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

META = torch.device("meta")
# Operations that only allocate memory or describe it differently; views are recognised by their schema.
FREE = {
    "aten::empty",
    "aten::empty_like",
    "aten::empty_strided",
    "aten::new_empty",
    "aten::new_empty_strided",
    "aten::_unsafe_view",
    "aten::lift_fresh",
}


class Operations(TorchDispatchMode):
    """Counts by name the operations on the device: kernels, copies from the host and messages between processes."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name, kwargs = func._schema.name, kwargs or {}
        made = _quickly(func, args, kwargs)
        tensors = [leaf for leaf in tree_leaves((args, kwargs, made)) if isinstance(leaf, torch.Tensor)]
        if any(tensor.device == META for tensor in tensors) and not func.is_view and name not in FREE:
            self.counts[name] += 1
        return made


def _quickly(func, args, kwargs):
    """Return what an operation gives on the meta device, where torch takes long to find the shapes of batch norm."""
    if func is torch.ops.aten.native_batch_norm.out:
        return kwargs["out"], kwargs["save_mean"], kwargs["save_invstd"]
    if func is torch.ops.aten.native_batch_norm_backward.default:
        x, weight = args[1:3]
        return torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)
    return func(*args, **kwargs)


@contextmanager
def processes(count):
    """Let this process be the first of several, whose messages are never sent."""
    if count > 1:
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=count)
    try:
        yield
    finally:
        if count > 1:
            dist.destroy_process_group()


def _shapes_of_kernels():
    """Tell the meta device the results' shapes of kernels that torch has for CPUs and GPUs, or GPUs, alone."""
    library = torch.library.Library("aten", "IMPL", "Meta")

    def by_channel(count):
        return lambda x, *_: tuple(x.new_empty(x.shape[1], dtype=torch.float32) for _ in range(count))

    library.impl("batch_norm_stats", by_channel(2))
    library.impl("batch_norm_gather_stats_with_counts", by_channel(2))
    library.impl("batch_norm_elemt.out", lambda *_, out: out)
    library.impl("batch_norm_backward_reduce", by_channel(4))
    library.impl("batch_norm_backward_elemt", lambda gradient, *_: torch.empty_like(gradient))
    return library


KERNELS = _shapes_of_kernels()  # registered for as long as it is referenced
