"""Continuing a finished run: its weights, prototypes, cluster ids and corrections."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch
import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering import stable_numbers
from propos.common.errors import InputError
from propos.common.progress import show_nothing
from propos.config import Config
from propos.data import Source, UnopenedSource
from propos.distributed import broadcast_bytes, world_size
from propos.methods import Method, build_method, find_method
from propos.networks import ClusterHeads, EmaCopy, Tuned, Whitening
from propos.runs import Run, RunFolder, write_atomically
from propos.training.checkpoint_validation import check_labels
from propos.training.corrections import Corrections, corrections_of, numbers_of
from propos.training.e_step import Assignment, Partition
from propos.training.features import features_of, input_channels
from propos.training.learner import Learner, is_part
from propos.training.model import KINDS, Model, check_weights, load_weights, predict_from_embeddings, weight_tensors
from propos.training.numerics import numerics
from propos.training.state import State

FILE = "start.safetensors"
LENGTH_SHARE = 0.25  # of the earlier run's epochs, by default
SHAPING = (
    "backbone",
    "stem",
    "width",
    "hidden",
    "dimension",
    "components",
)  # settings of the network that determine the shapes of its weights
SAME = 1e-3  # embeddings of the same image by the same network are closer than this


@dataclass(frozen=True)
class WarmStart:
    """The initial state of a run that continues another."""

    weights: dict[str, Tensor]
    prototypes: Float[Tensor, "L D"]
    labels: Int[Tensor, " N"]  # the row of the prototype each image had; -1 for images that are new
    shared: int  # number of images that the earlier run had too
    corrections: Corrections | None = None  # of the earlier run, if there are any

    def apply(self, learner: Learner, state: State) -> None:
        """Load the weights into the learner, and the clusters into the state, where the first E-step reads them."""
        check_labels(self.labels, learner.schedule.images, None, f"checkpoint/{FILE}")
        if not state.not_started:
            return  # a checkpoint contains everything
        load_weights(learner.method, self.weights)
        clusters, device = learner.config.clusters, learner.device
        if clusters is not None:  # if K is still to be chosen, the first E-step comes later
            state.partition = Partition(_below(self.labels, clusters).to(device), self.prototypes.to(device))

    def renumber(self, answer: Assignment) -> Assignment:
        """Renumber the final clusters so that most images keep their number of the earlier run."""
        clusters = len(answer.prototypes)
        before = _below(self.labels, clusters).numpy()
        numbers = torch.tensor(stable_numbers(before, answer.labels.cpu().numpy(), clusters))
        numbers = numbers.to(answer.labels.device)
        return replace(answer, labels=numbers[answer.labels], prototypes=answer.prototypes[numbers.argsort()])

    def write(self, run: RunFolder) -> None:
        """Write it to a run folder, so that resuming does not need the earlier run."""
        (run.path / "checkpoint").mkdir(exist_ok=True)
        write_atomically(run.path / "checkpoint" / FILE, self._packed())

    def _packed(self) -> bytes:
        tensors = {f"network.{name}": tensor for name, tensor in self.weights.items()}
        tensors |= {"prototypes": self.prototypes, "labels": self.labels, "shared": torch.tensor(self.shared)}
        tensors |= {} if self.corrections is None else self.corrections.packed()
        return safetensors.torch.save({name: tensor.contiguous() for name, tensor in tensors.items()})

    @classmethod
    def read(cls, run: Run) -> WarmStart | None:
        """Read the initial state of a run; None if it does not continue another."""
        if run.info.earlier is None:
            return None
        path = run.path / "checkpoint" / FILE
        try:
            start = cls._unpacked(path.read_bytes())
        except (OSError, KeyError, ValueError, RuntimeError, safetensors.SafetensorError):
            raise InputError(f"{path}: cannot be read: start a new run with another --out") from None
        check_weights(run.config, start.weights, path)
        start._check(path)
        return start

    def _check(self, path: Path) -> None:
        kinds = [(tensor.ndim, tensor.dtype) for tensor in (self.prototypes, self.labels)]
        if kinds != [(2, torch.float32), (1, torch.int64)] or not bool(torch.isfinite(self.prototypes).all()):
            raise InputError(f"{path}: contains no prototypes and labels: start a new run with another --out")
        check_labels(self.labels, len(self.labels), len(self.prototypes), str(path))
        if self.corrections is not None:
            fixed = self.corrections.fixed
            if fixed.dtype != torch.int64:
                raise InputError(f"{path}: contains no valid corrections: start a new run with another --out")
            check_labels(fixed.clamp(min=-1), len(self.labels), len(self.prototypes), str(path))
            part, whole = self.corrections.part, self.corrections.whole
            if part is not None and whole is not None:
                check_labels(part, len(self.labels), len(whole), str(path))
                check_labels(whole - 1, len(whole), len(self.prototypes) - 1, str(path))  # each is a cluster's

    @classmethod
    def of_first_process(cls, start: WarmStart | None) -> WarmStart | None:
        """Return the initial state of the first process."""
        content = broadcast_bytes(None if start is None else start._packed()) if world_size() > 1 else None
        return start if content is None else cls._unpacked(content)

    @classmethod
    def _unpacked(cls, content: bytes) -> WarmStart:
        tensors = safetensors.torch.load(content)
        weights = {name[8:]: tensor for name, tensor in tensors.items() if name.startswith("network.")}
        corrections = Corrections.unpacked(tensors)
        return cls(weights, tensors["prototypes"], tensors["labels"], int(tensors["shared"]), corrections)


def continuation_config(run: Run) -> Config:
    """Return the settings that continue a finished run: a quarter of its epochs, PSL from the start.

    Continuing a continued run uses the same number of epochs. K is the number of clusters after corrections.
    """
    config = run.config
    if not run.finished:
        raise InputError(f"{run.path}: is not finished (status: {run.info.status}): finish it with --resume first")
    if run.info.earlier is None:
        config = config.with_epochs(max(1, math.ceil(config.train.epochs * LENGTH_SHARE)))
    own = {
        f"{name}.{key}": value for name in config.sections for key, value in find_method(name).when_continuing.items()
    }
    config = config.with_settings({**own, "suggest.range": None, "keep_epochs": ()})
    run.refuse_all_junk()
    corrected = run.corrected
    return config.with_settings({"clusters": len(corrected.prototypes.ids)}) if corrected.edited else config


def start_from(run: Run, source: Source, device: torch.device, config: Config | None = None) -> WarmStart:
    """Find the images that an earlier run had, and return the initial state of a run that continues it.

    `config` are the settings of the new run, if they differ from the earlier run's.
    """
    with numerics(run.config.train):
        model = Model.uncorrected(run, device)
        inputs, frozen = source, model.frozen_backbone
        if frozen is not None:  # its features are cached: they are computed once, here or before
            inputs = features_of(frozen, source, device, show_nothing)
        embeddings = model.embeddings(inputs)
    rows = known_images(run, list(inputs.image_names()), embeddings.cpu().numpy())
    corrected, shared = run.corrected, int((rows >= 0).sum())
    prototypes = torch.from_numpy(corrected.prototypes.vectors[np.argsort(numbers_of(corrected))])
    labels, corrections = corrections_of(corrected, run.table.cluster, rows)
    if shared == 0:
        unknown = torch.full((len(embeddings),), -1, device=embeddings.device)
        labels = predict_from_embeddings(embeddings, prototypes.to(device), unknown).cluster
    weights = _initial_weights(model, config or run.config)
    return WarmStart(weights, prototypes, torch.from_numpy(labels.astype(np.int64)), shared, corrections)


def _initial_weights(model: Model, config: Config) -> dict[str, Tensor]:
    """Return the initial weights: the earlier run's; parts that it did not have keep their random initialisation.

    Cluster heads of another number are all initialised again. A moving average that it did not have starts as a copy
    of its source.
    """
    method = build_method(config, input_channels(config))
    fresh, earlier = weight_tensors(method), weight_tensors(model.method)
    if isinstance(method.online.backbone, Tuned) and isinstance(model.method.online.backbone, Whitening):
        return _weights_to_tune(model, method)
    names = {name: _earlier_name(name, model.config, config) for name in fresh}
    fitting = {name for name, own in names.items() if own in earlier and earlier[own].shape == fresh[name].shape}
    for heads in (name for name, module in method.named_modules() if isinstance(module, ClusterHeads)):
        ours = {name for name in fresh if is_part(name, (heads,))}
        theirs = {name for name in earlier if is_part(name, (_earlier_name(heads, model.config, config),))}
        if ours - fitting or len(theirs) != len(ours):
            fitting -= ours
    copied = {name: earlier[names[name]].cpu() if name in fitting else initial for name, initial in fresh.items()}
    load_weights(method, copied)
    for name, module in method.named_modules():
        if isinstance(module, EmaCopy):
            first = next(iter(module.state_dict()), "")
            if _earlier_name(f"{name}.{first}", model.config, config) not in earlier:
                module.reset()
    # Copies, since safetensors refuses shared memory.
    return {name: tensor.clone() for name, tensor in weight_tensors(method).items()}


def _earlier_name(name: str, earlier: Config, config: Config) -> str:
    """Return the name that a weight of the new method had in the earlier run's method."""
    if config.method != earlier.method and config.pretext == earlier.method:
        return name.removeprefix("pretext.") if name.startswith("pretext.") else f"not in {earlier.method}"
    return name


def _weights_to_tune(model: Model, method: Method) -> dict[str, Tensor]:
    """Return the initial weights to tune a pretrained network that the earlier run kept frozen."""
    tuned, whitening = method.online.backbone, model.method.online.backbone
    assert isinstance(tuned, Tuned)
    assert isinstance(whitening, Whitening)
    assert model.frozen_backbone is not None
    tuned.load_pretrained(model.frozen_backbone.weights)
    tuned.whitening.load_state_dict(whitening.state_dict())
    for module in method.modules():
        if isinstance(module, EmaCopy):
            module.reset()
    return {name: tensor.clone() for name, tensor in weight_tensors(method).items()}


def fitting_channels(run: Run, config: Config, unopened: UnopenedSource, name: str) -> int:
    """Return the number of channels to read images with for an earlier run's weights; refuse other images."""
    earlier = run.config
    _refuse_other_networks(run, earlier, config)
    assert earlier.pixels.mean is not None
    channels = len(earlier.pixels.mean)
    readable = unopened.scan is not None and unopened.channels < channels  # greyscale files are read as RGB
    if unopened.channels != channels and not readable:
        raise InputError(
            f"{name}: contains {KINDS[unopened.channels]} images; {run.path} was trained on {KINDS[channels]} ones"
        )
    return channels


def known_images(run: Run, names: list[str], embeddings: Float[np.ndarray, "N D"]) -> Int[np.ndarray, " N"]:
    """Return the row of each image in an earlier run's table; -1 for new images.

    An image is the same if its embedding is the same, under its old name or another.
    """
    table, old = run.table, run.embeddings
    places = {name: place for place, name in enumerate(table.images)}
    earlier_rows = np.array([places.get(name, -1) for name in names])
    changed = np.linalg.norm(embeddings - old[earlier_rows], axis=1) >= SAME
    rest = np.flatnonzero((earlier_rows < 0) | changed)
    if len(rest):
        from scipy.spatial import KDTree  # imported only when needed

        _, nearest = KDTree(old).query(embeddings[rest], distance_upper_bound=SAME)
        earlier_rows[rest] = np.where(nearest < len(old), nearest, -1)
    return earlier_rows


def _refuse_other_networks(run: Run, earlier: Config, config: Config) -> None:
    """Refuse settings whose network cannot take the weights of an earlier run."""
    for key in SHAPING:
        was, now = getattr(earlier.network, key), getattr(config.network, key)
        if was != now:
            raise InputError(f"network.{key} = {now}: {run.path} has {was}; a run continues only with the same network")
    before, corrected = find_method(earlier.method), run.corrected
    if corrected.edited and config.clusters != len(corrected.prototypes.ids):
        there = len(corrected.prototypes.ids)
        raise InputError(f"-k: {run.path} was corrected and now has {there} clusters: leave out -k")
    if not before.trains and config.start.learns != "nothing" and config.start.network == earlier.start.network:
        return  # the network is trained further from here
    below = config.pretext
    builds = below is not None and below in (earlier.method, earlier.pretext)
    if not before.trains and not corrected.edited and not builds:
        raise InputError(
            f"{run.path}: was made by {earlier.method}, which trains nothing to continue from, and has no corrections: "
            f"correct it first (propos open {shlex.quote(str(run.path))}), or start a new run"
        )
    if before.has_head and set(corrected.prototypes.ids) != set(run.prototypes.ids):
        raise InputError(f"{run.path}: the cluster head cannot represent merged or split clusters: start a new run")
    if before.has_head and config.clusters != earlier.clusters:
        raise InputError(f"{run.path}: its cluster head has {earlier.clusters} clusters: use -k {earlier.clusters}")
    if not builds and _shape(earlier) != _shape(config):
        raise InputError(f"--method {config.method}: {run.path} was trained by {earlier.method}, whose network differs")


def _shape(config: Config) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a method's weights by name."""
    with torch.device("meta"):
        return {
            name: tuple(each.shape)
            for name, each in weight_tensors(build_method(config, input_channels(config))).items()
        }


def _below(labels: Int[Tensor, " N"], clusters: int | None) -> Int[Tensor, " N"]:
    """Replace numbers at or above the number of clusters by -1."""
    assert clusters is not None
    return torch.where(labels < clusters, labels, -1)
