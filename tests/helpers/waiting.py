"""A device that computes nothing and tells what would make the host wait for it."""

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

META = torch.device("meta")
# What cannot know the shape or the number it is to give before the device has computed everything up to here.
WAITING = {
    "aten::nonzero",
    "aten::_local_scalar_dense",
    "aten::item",
    "aten::is_nonzero",
    "aten::equal",
    "aten::allclose",
    "aten::masked_select",
    "aten::_unique",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::unique_consecutive",
    "aten::bincount",
    "aten::histc",
    "aten::argwhere",
    "aten::repeat_interleave",
}
INDEXING = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}
# Of those that torch names as without a version that repeats on a GPU, what a step could come near.
UNREPEATABLE = {
    "aten::grid_sampler_2d_backward",
    "aten::_adaptive_avg_pool2d_backward",
    "aten::adaptive_max_pool2d_backward",
    "aten::avg_pool3d_backward",
    "aten::max_pool3d_with_indices_backward",
    "aten::nll_loss2d",
    "aten::upsample_bilinear2d_backward",
    "aten::upsample_nearest2d_backward",
    "aten::reflection_pad1d_backward",
    "aten::reflection_pad2d_backward",
    "aten::replication_pad2d_backward",
    "aten::_embedding_bag_backward",
    "aten::put_",
    "aten::histc",
    "aten::kthvalue",
    "aten::median",
    "aten::_ctc_loss",
    "aten::max_unpool2d",
}


def repeats(name, args):
    """Return whether an operation gives the same bits every time on a GPU."""
    return name not in UNREPEATABLE and not (name == "aten::cumsum" and args[0].is_floating_point())


class _Constants(TorchFunctionMode):
    """Notes numbers of the host that become a tensor of the device, which dispatch does not see."""

    def __init__(self, waits):
        super().__init__()
        self.waits = waits

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in (torch.tensor, torch.as_tensor) and torch.device(kwargs.get("device") or "cpu") == META:
            self.waits.append(f"a constant made on the device: {args[0]}")
        return func(*args, **kwargs)


class Waits(TorchDispatchMode):
    """Notes each operation on the device that would make the host wait, or that would not repeat, and what is sent."""

    def __init__(self):
        super().__init__()
        self.waits, self.unrepeatable, self.sent = [], [], []
        self.constants = _Constants(self.waits)

    def __enter__(self):
        self.constants.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self.constants.__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._schema.name
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if any(tensor.device == META for tensor in tensors):
            self._look_at(name, args, kwargs, tensors)
        elif tensors and torch.device(kwargs.get("device") or "cpu") == META:
            self.sent.append(tuple(tensors[0].shape))
            if not kwargs.get("non_blocking"):
                self.waits.append(f"{name} of {tuple(tensors[0].shape)} from the host")
        return func(*args, **kwargs)

    def _look_at(self, name, args, kwargs, tensors):
        masks = name in INDEXING and any(
            isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8) for index in args[1]
        )
        known = name == "aten::repeat_interleave" and kwargs.get("output_size") is not None
        if (name in WAITING and not known) or masks:
            self.waits.append(name)
        if name in ("aten::_to_copy", "aten::copy_") and (
            torch.device(kwargs.get("device") or META) != META
            or (name == "aten::copy_" and {tensor.device for tensor in tensors} != {META})
        ):
            self.waits.append(f"{name} between host and device")
        if not repeats(name, args):
            self.unrepeatable.append(name)
