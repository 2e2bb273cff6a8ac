"""Comparison of one process with several: steps, E-steps, batch norm, which images are read."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from helpers import two_stages
from helpers.methods import REPRESENTATIVE, TRAINED
from helpers.small import CPU, digits, quick_config
from propos.common.errors import Interrupted
from propos.distributed import Shuffle, any_process, gather, gather_on_first, join_process_group, rank, share
from propos.methods import find_method, stages_of
from propos.networks.grouped_norm import BatchGroups
from propos.networks.norm import BatchNorm, in_groups
from propos.runs import RunFolder
from propos.training import Silent, train
from propos.training.checkpoint_validation import memories_of
from propos.training.context import BatchContext
from propos.training.e_step import e_step, embedded_images
from propos.training.learner import at_stage, build_learner, is_part
from propos.training.m_step import m_step
from propos.training.order import epoch_order
from propos.training.stage_setup import begin_epoch
from propos.training.state import first_state

VARIANTS = {
    "two groups": {"network__bn_groups": 2},
    "three groups": {"network__bn_groups": 3},
    "one group of uneven shares": {"train__batch_size": 63},
    "four groups of uneven shares": {"train__batch_size": 61, "network__bn_groups": 4},
    "shuffled": {"network__bn_groups": 2, "network__shuffle_bn": True},
    "shuffled, three groups": {"network__bn_groups": 3, "network__shuffle_bn": True},
    "both views together": {"network__joint_views": True},
    "both views together in two groups": {"network__joint_views": True, "network__bn_groups": 2},
    "accumulated": {"train__batch_size": 32, "train__accumulate": 2, "network__bn_groups": 2},
    "a queue": {"queue_size": 96},
    "streamed": {"estep__embeddings": "streamed"},
}
SEED = 1
# With others a unit of ReLU lies so near zero that rounding takes it to the other side.
SEEDS = {"idec": 3, "rotnet": 1}
CASES = {**{method: {"method": method} for method in TRAINED}, **VARIANTS, "rotnet": {"method": "rotnet", "seed": 1}}


def later_settings(method):
    """Return settings with several heads, where a method may have any, and a seed that rounding does not decide."""
    heads = {"heads": 3} if "heads" in find_method(method).Settings.model_fields else {}
    return {"method": method, **heads, "seed": SEEDS.get(method, SEED)}


LATER = {
    f"{method}, stage {number}": (later_settings(method), number)
    for method in TRAINED
    for number in range(1, len(stages_of(quick_config(method=method))))
}
STEPS = {**{name: (settings, 0) for name, settings in CASES.items()}, **LATER}
# Of the methods, `make test` takes those that stand for all.
OTHERS = {name for name, (settings, _) in STEPS.items() if settings.get("method", "propos") not in REPRESENTATIVE}
EPOCH = 1
ROWS, CHANNELS = 13, 5


class Recording:
    """A source that remembers which images it was asked for."""

    def __init__(self, source):
        self.source, self.asked = source, []

    def __getattr__(self, name):
        return getattr(self.source, name)

    def __len__(self):
        return len(self.source)

    def batch(self, positions):
        self.asked.append(np.array(positions))
        return self.source.batch(positions)


def one_step(settings, number=0):
    """Return an E-step's labels, and the losses, gradients, buffers and memories of the step after it."""
    source = digits()
    learner = at_stage(build_learner(quick_config(source, **settings), source, CPU), number)
    epoch = max(EPOCH, learner.epochs.start)
    state = first_state(learner)
    state.epoch = learner.epochs.start
    begin_epoch(learner, source, state)
    found = e_step(learner, source, epoch, previous=None)
    state.epoch, state.partition = epoch, found.partition()
    learner.method.after_clustering(embedded_images(learner, found, epoch, None), BatchContext.of(learner, state))
    if learner.config.estep.embeddings == "streamed":
        state.streamed = found.embeddings.clone()
    gradients = {}

    def keep(*_):
        for name, parameter in learner.method.named_parameters():
            if parameter.grad is not None:
                gradients[name] = parameter.grad.clone()

    learner.optimiser.register_step_pre_hook(keep)
    positions = epoch_order(0, epoch, learner.schedule)[0]
    losses = m_step(learner, source, positions, state)
    floats = {name: b.clone() for name, b in learner.method.named_buffers() if b.is_floating_point()}
    kept = tuple(memories_of(learner.method))
    made = {
        "labels": found.labels,
        "losses": losses,
        "gradients": gradients,
        "buffers": {name: buffer for name, buffer in floats.items() if not is_part(name, kept)},
        "memories": {name: buffer for name, buffer in floats.items() if is_part(name, kept)},
    }
    if state.streamed is not None:
        made["streamed"] = gather(state.streamed, len(source))
    return made


def rows():
    draw = torch.Generator().manual_seed(1)
    return torch.randn(ROWS, CHANNELS, 2, 2, generator=draw) * 3 + 1, torch.randn(ROWS, CHANNELS, 2, 2, generator=draw)


def batch_norm(groups, precision=torch.float32):
    """Return this process's part of batch norm's output and input gradient, and the buffers."""
    x, weights = (tensor[share(ROWS)].to(precision) for tensor in rows())
    x = x.clone().requires_grad_()
    norm = BatchNorm(CHANNELS)
    with in_groups(norm, BatchGroups.of(ROWS, groups)):
        y = norm(x)
    (y * weights).sum().backward()
    return {"y": y.detach(), "dx": x.grad, "mean": norm.running_mean, "var": norm.running_var}


def batch_norm_by_torch(groups):
    """Return the same of torch's batch norm on each group by itself."""
    x, weights = rows()
    x.requires_grad_()
    bounds = [ROWS * number // groups for number in range(groups + 1)]
    means, variances, parts = torch.zeros(groups, CHANNELS), torch.ones(groups, CHANNELS), []
    for number in range(groups):
        part = x[bounds[number] : bounds[number + 1]]
        parts.append(F.batch_norm(part, means[number], variances[number], training=True))
    y = torch.cat(parts)
    (y * weights).sum().backward()
    return {"y": y.detach(), "dx": x.grad, "mean": means.mean(dim=0), "var": variances.mean(dim=0)}


def order_of_rows():
    return torch.randperm(ROWS, generator=torch.Generator().manual_seed(3))


def shuffled(kind=torch.float32):
    """Return this process's share of the shuffled rows, and what it gets when they are returned."""
    shuffle = Shuffle(order_of_rows(), CPU)
    there = shuffle.apply(rows()[0][share(ROWS)].to(kind))
    return {"there": there, "back": shuffle.undo(there)}


def bytes_of_a_shuffle():
    """Return the bytes that this process writes to sockets while rows of a megabyte are shuffled."""
    shuffle, large = Shuffle(order_of_rows(), CPU), torch.zeros(len(range(ROWS)[share(ROWS)]), 2**18)
    before = bytes_written()
    shuffle.apply(large)
    any_process(False)  # all of it has left when the others have answered
    return torch.tensor(bytes_written() - before)


def bytes_written():
    counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counts["wchar"])


def images_read():
    """Return the images this process read in each epoch of a short run, E-steps aside."""
    config, source = quick_config(digits(), train__epochs=2), Recording(digits())
    train(config, source, CPU, Silent())
    # An E-step reads a share of the images; a step, half a batch of 64.
    return [torch.from_numpy(asked) for asked in source.asked if len(asked) == len(range(64)[share(64)])]


def two_stage_run(folder):
    """Return the clusters and weights of a run in two stages, whole, and stopped at the border and resumed."""
    source, settings = digits(), quick_config(**two_stages.QUICK)
    whole = train(settings, source, CPU, Silent())
    run = RunFolder.create(folder / "staged", {}, settings) if rank() == 0 else None
    asked = iter(range(1, 100))
    with suppress(Interrupted):  # after two epochs of an opening and three steps each
        train(settings, source, CPU, Silent(), run, lambda: next(asked) >= 8)
    resumed = train(settings, source, CPU, Silent(), run)
    return {
        name: {"clusters": torch.from_numpy(each.table.cluster), **each.model.method.state_dict()}
        for name, each in (("whole", whole), ("resumed", resumed))
    }


def everything(folder):
    """Return all that is compared, of this process."""
    two_stages.register()
    return {
        "stages": two_stage_run(folder),
        "steps": {name: one_step(*case) for name, case in STEPS.items() if name not in OTHERS},
        "norms": {groups: batch_norm(groups) for groups in (1, 2, 3, 4, 6)},
        "half": batch_norm(1, torch.bfloat16),
        "shuffled": {str(kind): shuffled(kind) for kind in (torch.float32, torch.bfloat16)},
        "shuffled bytes": bytes_of_a_shuffle(),
        "read": images_read(),
        "agreed": torch.tensor(any_process(rank() == 1, False)),
    }


def write(folder):
    """Write what this process found into a folder."""
    torch.set_num_threads(1)
    with join_process_group():
        found = everything(Path(folder))
        piece = gather_on_first(torch.arange(7.0)[share(7)], 7)
        found["collected"] = torch.empty(0) if piece is None else piece
        torch.save(found, Path(folder) / f"{rank()}.pt")


def write_others(folder):
    """Write the steps of the other methods."""
    torch.set_num_threads(1)
    with join_process_group():
        steps = {name: one_step(*STEPS[name]) for name in sorted(OTHERS)}
        torch.save({"steps": steps}, Path(folder) / f"{rank()}.pt")
