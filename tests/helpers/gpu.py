"""A stand-in for a GPU: tensors that say they are on `cuda` and keep their values in the host's memory.

As on a GPU, tensors of host and device do not mix, a tensor of the device gives no numbers to numpy, and autocast
computes in half precision. Unlike a GPU, it notes what makes the host wait for it, and where in propos that is.
Copies between host and device that are not waited for happen as late as streams and events allow, so that whoever reads
too early reads garbage.
"""

import sys
import threading
import time
import traceback
from collections import deque
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

import propos
from helpers.waiting import INDEXING, WAITING, repeats

GPU = torch.device("cuda", 0)
# What torch's C++ takes the tensors for: a device that runs backward passes in the thread of the caller.
HIDDEN = torch.device("meta", 1)
MEMORY = 8 * 2**30
SOURCE = str(Path(propos.__file__).parent)
# These may take tensors of both.
CROSSING = {"aten::_to_copy", "aten::copy_"}
HALF = {
    *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "linear"),
    *("matmul", "__matmul__", "__rmatmul__", "mm", "mv", "bmm", "addmm", "addmv", "addbmm", "baddbmm", "einsum"),
    *("prelu", "scaled_dot_product_attention"),
}
FULL = {
    *("exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "pow", "__pow__", "softplus"),
    *("softmax", "log_softmax", "cross_entropy", "nll_loss", "kl_div", "mse_loss", "l1_loss", "smooth_l1_loss"),
    *("binary_cross_entropy_with_logits", "cosine_similarity", "layer_norm", "group_norm", "norm", "cdist", "dist"),
    *("logsumexp", "prod", "cumprod", "cumsum", "sum", "vector_norm", "linalg_vector_norm", "normalize", "interpolate"),
}
PROMOTED = {"addcdiv", "addcmul", "dot", "grid_sample", "grid_sampler", "index_put", "scatter_add", "tensordot"}
MUTATED_SHAPES = {"aten::resize_", "aten::set_", "aten::t_", "aten::transpose_", "aten::squeeze_", "aten::unsqueeze_"}


class OnGpu(torch.Tensor):
    """A tensor of the stand-in."""

    @staticmethod
    def __new__(cls, held):
        outer = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=HIDDEN,
        )
        outer.held = held
        return outer

    __torch_function__ = torch._C._disabled_torch_function_impl
    device = property(lambda self: GPU)
    is_cuda = property(lambda self: True)
    is_meta = property(lambda self: False)
    is_cpu = property(lambda self: False)

    def __repr__(self):
        return f"OnGpu({self.held!r})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


def _run(func, args, kwargs):
    """Run an operation that has to do with the stand-in, as a GPU would."""
    name = func._schema.name
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    ours = [tensor for tensor in tensors if isinstance(tensor, OnGpu)]
    target = kwargs.get("device")
    gpu = _current()
    gpu.operations += 1
    assert len(ours) == sum(tensor.device.type in ("cuda", "meta") for tensor in tensors), f"{name}: a tensor was lost"
    if name in MUTATED_SHAPES:
        raise NotImplementedError(f"the stand-in does not know {name}")
    if name in CROSSING:
        return _copied(gpu, func, name, args, kwargs)
    if ours:
        _refuse_mixed(name, args, kwargs, tensors)
        if torch.are_deterministic_algorithms_enabled() and not repeats(name, args):
            raise RuntimeError(f"{name} does not have a deterministic implementation")
        _note(gpu, name, args, kwargs, tensors)
    elif tensors and target == HIDDEN:
        gpu.wait(f"{name} of {tuple(tensors[0].shape)} from the host")
    held = tree_map_only(OnGpu, lambda each: each.held, (args, kwargs))
    if target is not None:
        held[1]["device"] = torch.device("cpu") if target == HIDDEN else target
    made = func(*held[0], **held[1])
    if target is not None and target != HIDDEN:
        return made
    return _outputs(func, args, kwargs, made)


def _copied(gpu, func, name, args, kwargs):
    """Copy within the device, or between host and device."""
    if name == "aten::_to_copy":
        source = args[0]
        target = kwargs.get("device")
        to_gpu = isinstance(source, OnGpu) if target is None else target == HIDDEN
        other = {key: value for key, value in kwargs.items() if key not in ("device", "non_blocking", "pin_memory")}
        blocking = not kwargs.get("non_blocking")
        if not isinstance(source, OnGpu) and to_gpu:
            gpu.sent.append(tuple(source.shape))
            made = torch.empty_like(source, **other)
            gpu.transfer(made, source, blocking, upward=True)
            return OnGpu(made)
        inner = source.held if isinstance(source, OnGpu) else source
        if isinstance(source, OnGpu) and not to_gpu:
            made = torch.empty_like(inner, **other)
            gpu.transfer(made, inner, blocking, upward=False)
            return made
        made = func(inner, **other)
        return OnGpu(made) if to_gpu else made
    into, source = args[:2]
    blocking = not (args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
    inside = [each.held if isinstance(each, OnGpu) else each for each in (into, source)]
    if isinstance(into, OnGpu) == isinstance(source, OnGpu) or (isinstance(into, OnGpu) and source.ndim == 0):
        inside[0].copy_(inside[1])
    else:
        gpu.transfer(*inside, blocking, upward=isinstance(into, OnGpu))
    return into


def _refuse_mixed(name, args, kwargs, tensors):
    strangers = [tensor for tensor in tensors if not isinstance(tensor, OnGpu) and tensor.ndim > 0]
    if name in INDEXING and isinstance(args[0], OnGpu):  # an index may be on the host, and is sent
        strangers = [tensor for tensor in args[2:] if isinstance(tensor, torch.Tensor)]
        strangers = [tensor for tensor in strangers if not isinstance(tensor, OnGpu) and tensor.ndim > 0]
    elif isinstance(args[0] if args else None, torch.Tensor) and not isinstance(args[0], OnGpu) and name.endswith("_"):
        strangers = [args[0]]
    if strangers:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in strangers)
        raise RuntimeError(f"{name}: expected all tensors to be on the same device, but those of {shapes} are on cpu")


def _note(gpu, name, args, kwargs, tensors):
    """Note what the host has to wait for."""
    indices = [index for index in args[1] if index is not None] if name in INDEXING else []
    masks = any(index.dtype in (torch.bool, torch.uint8) for index in indices)
    known = name == "aten::repeat_interleave" and kwargs.get("output_size") is not None
    if (name in WAITING and not known) or masks:
        gpu.wait(name)
    if any(not isinstance(index, OnGpu) for index in indices):
        gpu.wait(f"{name} by an index of the host")


@cache
def _writes(func):
    """Return for each output of an operation the argument that it is, written in place, if it is one."""
    schema = func._schema
    places = []
    for returned in schema.returns:
        info, place = returned.alias_info, None
        if info is not None and info.is_write:
            for number, argument in enumerate(schema.arguments):
                if argument.alias_info is not None and argument.alias_info.before_set == info.before_set:
                    place = argument.name if argument.kwarg_only else number
        places.append(place)
    return tuple(places)


def _outputs(func, args, kwargs, made):
    places = _writes(func)
    if len(places) == 1 and places[0] is not None:
        return kwargs[places[0]] if isinstance(places[0], str) else args[places[0]]
    if any(place is not None for place in places):
        given = [
            kwargs[place] if isinstance(place, str) else None if place is None else args[place] for place in places
        ]
        return tuple(
            tree_map_only(torch.Tensor, _wrapped, one) if place is None else known
            for one, known, place in zip(made, given, places, strict=True)
        )
    return tree_map_only(torch.Tensor, _wrapped, made)


def _wrapped(tensor):
    return tensor if isinstance(tensor, OnGpu) else OnGpu(tensor)


class _Dispatched(TorchDispatchMode):
    """Takes what names the device and has no tensor of it: tensors that are made there, or sent there."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if _is_gpu(kwargs.get("device")):  # from a function of torch that is written in Python
            kwargs["device"] = HIDDEN
        if kwargs.get("pin_memory"):
            made = func(*args, **{**kwargs, "pin_memory": False})
            _current().pin(made)
            return made
        ours = kwargs.get("device") == HIDDEN or any(isinstance(leaf, OnGpu) for leaf in tree_leaves((args, kwargs)))
        return _run(func, args, kwargs) if ours else func(*args, **kwargs)


class _Called(TorchFunctionMode):
    """Takes calls of torch where C++ would look for a GPU: names of the device, pinned memory, autocast."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        gpu = _current()
        if func is torch.Tensor.new_tensor and isinstance(args[0], OnGpu):
            kwargs = {"dtype": args[0].dtype, "device": GPU, **kwargs}
            func, args = torch.tensor, args[1:]
        if "device" in kwargs and _is_gpu(kwargs["device"]):
            kwargs["device"] = HIDDEN
            if func in (torch.tensor, torch.as_tensor) and not isinstance(args[0], torch.Tensor):
                made = func(*args, **{**kwargs, "device": "cpu"})
                with gpu.waiting_known(f"a constant made on the device: {args[0]}"):
                    return made.to(HIDDEN)
        name = getattr(func, "__name__", "")
        if func is torch.Tensor.to or func is torch.Tensor.cuda:
            args = tuple(HIDDEN if _is_gpu(arg) else arg for arg in args)
            if func is torch.Tensor.cuda:
                func, args = torch.Tensor.to, (args[0], HIDDEN)
        elif func is torch.Tensor.pin_memory:
            return gpu.pin(args[0].clone(memory_format=torch.contiguous_format))
        elif func is torch.Tensor.tolist and isinstance(args[0], OnGpu):
            return args[0].cpu().tolist()
        elif func is torch.Tensor.is_pinned:
            return gpu.is_pinned(args[0])
        elif name in HALF or name in FULL or name in PROMOTED:
            args, kwargs = _cast(name, args, kwargs)
        return func(*args, **kwargs)


def _cast(name, args, kwargs):
    """Return the arguments in the precision of autocast."""
    if not torch.is_autocast_enabled("cuda"):
        return args, kwargs
    leaves = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, OnGpu)]
    floats = [leaf for leaf in leaves if leaf.is_floating_point() and leaf.dtype != torch.float64]
    if not floats:
        return args, kwargs
    if name in HALF:
        kind = torch.get_autocast_dtype("cuda")
    elif name in FULL:
        kind = torch.float32
    else:
        kind = max((leaf.dtype for leaf in floats), key=lambda dtype: dtype.itemsize)
    chosen = {id(leaf) for leaf in floats}
    return tree_map_only(OnGpu, lambda each: each.to(kind) if id(each) in chosen else each, (args, kwargs))


def _is_gpu(device):
    if isinstance(device, int | torch.device | str) and not isinstance(device, bool):
        try:
            return torch.device(device).type == "cuda"
        except RuntimeError:
            return False
    return False


class Stream:
    """A queue of copies, each made when somebody waits for it."""

    def __init__(self, device=None, priority=0):
        self.device, self.copies, self.done, self.length = GPU, deque(), 0, 0  # `length` counts all copies, also done
        self._copying, self._counting = threading.Lock(), threading.Lock()

    def run(self, until=None):
        with self._copying:  # a thread that waits for a copy waits for one that another thread makes
            while self.copies and (until is None or self.done < until):
                into, source = self.copies.popleft()
                into.copy_(source)
                self.done += 1

    def enqueue(self, into, source):
        with self._counting:
            self.copies.append((into, source))
            self.length += 1

    def wait_event(self, event):
        event.reach()

    def wait_stream(self, stream):
        stream.run()

    def synchronize(self):
        self.run()

    def is_capturing(self):
        return False


class Event:
    """A place in a stream, and when it was recorded."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False):
        self.stream, self.place, self.when = None, 0, time.perf_counter()

    def record(self, stream=None):
        self.stream = stream or _current().stream()
        self.place, self.when = self.stream.length, time.perf_counter()

    def reach(self):
        if self.stream is not None:
            with torch._C._DisableTorchDispatch(), torch.no_grad():
                self.stream.run(self.place)

    def synchronize(self):
        self.reach()

    def query(self):
        return self.stream is None or self.stream.done >= self.place

    def elapsed_time(self, other):
        return 1000 * (other.when - self.when)


class Gpu:
    """The stand-in while it is there: what was asked of it."""

    def __init__(self):
        self.waits = []  # what the host waited for, and the line of propos that asked
        self.sent = []  # shapes that were sent from the host
        self.operations = 0
        self._pinned = {}  # by address; kept, so that no other memory has it
        self._default = Stream()
        self._local = threading.local()

    def stream(self):
        return getattr(self._local, "stream", None) or self._default

    @contextmanager
    def on_stream(self, stream):
        before, self._local.stream = getattr(self._local, "stream", None), stream
        try:
            yield
        finally:
            self._local.stream = before

    @contextmanager
    def waiting_known(self, what):
        """Note one wait for all that happens within."""
        self.wait(what)
        before, self._local.quiet = getattr(self._local, "quiet", False), True
        try:
            yield
        finally:
            self._local.quiet = before

    def wait(self, what):
        if not getattr(self._local, "quiet", False):
            self.waits.append(f"{what}: {_where()}")

    def pin(self, tensor):
        storage = tensor.untyped_storage()
        self._pinned[storage.data_ptr()] = storage
        return tensor

    def is_pinned(self, tensor):
        return not isinstance(tensor, OnGpu) and tensor.untyped_storage().data_ptr() in self._pinned

    def transfer(self, into, source, blocking, upward):
        """Copy between host and device: at once if the host waits, else when the stream is waited for."""
        host = source if upward else into
        late = not blocking and (self.is_pinned(host) or not upward)
        if not late:
            self.wait(f"a copy of {tuple(source.shape)} {'to' if upward else 'from'} the device")
        stream = self.stream()
        if late and (stream is not self._default or not upward):
            _spoil(into)
            stream.enqueue(into, source)
        else:
            into.copy_(source)

    def synchronize(self, device=None):
        self.wait("synchronize")
        self._default.run()


def _spoil(tensor):
    """Fill a tensor with what nobody wants to read."""
    if tensor.is_floating_point():
        tensor.fill_(float("nan"))
    elif tensor.dtype != torch.bool:
        tensor.fill_(torch.iinfo(tensor.dtype).max)


def _where():
    """Return the innermost line of propos that runs."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith(SOURCE):
            place = frame.f_code.co_filename.removeprefix(SOURCE + "/")
            return f"{place}:{frame.f_code.co_name}:{frame.f_lineno}"
        frame = frame.f_back
    return traceback.extract_stack(limit=3)[0].name


_there = []


def _current():
    return _there[-1] if _there else Gpu()


@contextmanager
def _entered():
    with _Called(), _Dispatched():
        yield


@contextmanager
def standing_in(bfloat16=True):
    """Have torch find a GPU, which is the stand-in; yields what is asked of it."""
    gpu, run = Gpu(), threading.Thread.run

    def run_entered(thread):
        with _entered():
            run(thread)

    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "is_available": lambda: True,
            "is_initialized": lambda: True,
            "device_count": lambda: 1,
            "current_device": lambda: 0,
            "set_device": lambda device: None,
            "_lazy_init": lambda: None,
            "is_bf16_supported": lambda including_emulation=True: bfloat16,
            "get_device_name": lambda device=None: "stand-in",
            "get_device_capability": lambda device=None: (8, 0),
            "mem_get_info": lambda device=None: (MEMORY, MEMORY),
            "max_memory_allocated": lambda device=None: 0,
            "reset_peak_memory_stats": lambda device=None: None,
            "empty_cache": lambda: None,
            "synchronize": gpu.synchronize,
            "_sleep": lambda cycles: None,
            "Stream": Stream,
            "Event": Event,
            "stream": gpu.on_stream,
            "current_stream": lambda device=None: gpu.stream(),
            "default_stream": lambda device=None: gpu._default,
            "get_device_properties": lambda device=None: _Properties(),
        }.items():
            patch.setattr(torch.cuda, name, value)
        patch.setattr(torch.accelerator, "current_stream", lambda device=None: gpu.stream())
        patch.setattr(threading.Thread, "run", run_entered)
        patch.setattr(torch.Tensor, "record_stream", lambda tensor, stream: None)
        # A subclass has no inference tensors.
        patch.setattr(torch.inference_mode, "__enter__", _enter_no_grad)
        patch.setattr(torch.inference_mode, "__exit__", _leave_no_grad)
        _there.append(gpu)
        before = torch.__future__.get_overwrite_module_params_on_conversion()
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        try:
            with _entered():
                yield gpu
        finally:
            torch.__future__.set_overwrite_module_params_on_conversion(before)
            _there.pop()


def _enter_no_grad(mode):
    mode.instead = torch.no_grad()
    mode.instead.__enter__()


def _leave_no_grad(mode, *error):
    mode.instead.__exit__(*error)


class _Properties:
    name = "stand-in"
    total_memory = MEMORY
    multi_processor_count = 1
    major, minor = 8, 0
