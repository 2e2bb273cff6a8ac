"""A trained model: its results, and predictions for new images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from propos.clustering import assign, spans
from propos.common.errors import InputError, shown
from propos.config import Config
from propos.data import Source, readable
from propos.distributed import gather, gather_on_first, share
from propos.methods import Method, build_method, stages_of
from propos.networks import Encoder, FrozenBackbone, read_copy
from propos.runs import (
    CONFIDENCE_TEMPERATURE,
    JUNK,
    CorrectedRun,
    Edit,
    EditLog,
    ImageTable,
    Prototypes,
    Run,
    RunFolder,
    Tree,
    correct,
    rows_of,
)
from propos.training.checkpoint_validation import memories_of
from propos.training.corrections import Corrections
from propos.training.e_step import Assignment
from propos.training.embedding import collect, embed_batches, method_output_batches, output_batches
from propos.training.features import FeatureSource, as_features, frozen_backbone_of, input_channels
from propos.training.health import Record
from propos.training.learner import Learner, is_part

BACKBONE = "backbone.safetensors"  # a copy of the frozen pretrained network
EDITS = "the edits of the run"
KINDS = {1: "greyscale", 3: "colour"}
COSINES = 2**21  # at a time: images × clusters are never in memory at once
Rows = Iterator[ImageTable]


@dataclass(frozen=True)
class Prediction:
    """The clusters of images; confidence is a ranking, not a calibrated probability."""

    cluster: Int[np.ndarray, " N"]  # ids
    confidence: Float[np.ndarray, " N"]
    distance: Float[np.ndarray, " N"]  # 1 − cosine to the prototype


def predict_from_cosines(
    cosines: Float[Tensor, "N K"],
    rows: Int[Tensor, " N"],
    ids: Int[np.ndarray, " K"],
    confidence: Float[Tensor, " N"] | None = None,
) -> Prediction:
    """Return cluster, confidence and distance of images.

    `rows` are the images' rows of the prototypes, and `ids` the cluster ids of those rows.
    """
    confidence, distance = _confidence_and_distance(cosines, rows, confidence)
    return Prediction(ids[rows.cpu().numpy()], confidence.cpu().numpy(), distance.cpu().numpy())


def predict_from_embeddings(
    embeddings: Float[Tensor, "N D"],
    prototypes: Float[Tensor, "K D"],
    labels: Int[Tensor, " N"],
    confidence: Float[Tensor, " N"] | None = None,
) -> Prediction:
    """Return cluster, confidence and distance of images with known labels (−1: the nearest cluster), in blocks."""

    def blocks() -> Iterator[tuple[Tensor, ...]]:
        for span in spans(len(embeddings), max(1, COSINES // len(prototypes))):
            cosines = embeddings[span] @ prototypes.T
            rows = torch.where(labels[span] >= 0, labels[span], cosines.argmax(dim=1))
            known = None if confidence is None else confidence[span]
            yield rows, *_confidence_and_distance(cosines, rows, known)

    return Prediction(*(column.cpu().numpy() for column in collect(blocks(), len(embeddings))))


def _confidence_and_distance(
    cosines: Float[Tensor, "N K"], rows: Int[Tensor, " N"], confidence: Float[Tensor, " N"] | None
) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
    """Return the confidence (a cluster head's, else softmax of cosine / 0.1) and the distance to the prototype."""
    if confidence is None:
        confidence = torch.softmax(cosines / CONFIDENCE_TEMPERATURE, dim=1).gather(1, rows[:, None])[:, 0]
    return confidence, 1 - cosines.gather(1, rows[:, None])[:, 0]


def _joined(parts: list[Prediction]) -> Prediction:
    columns = zip(*((part.cluster, part.confidence, part.distance) for part in parts), strict=True)
    return Prediction(*(np.concatenate(column) for column in columns))


@dataclass(frozen=True)
class Model:
    """The networks, and the prototypes of the clusters in their embedding."""

    config: Config
    method: Method
    prototypes: Float[Tensor, "K D"]
    ids: Int[np.ndarray, " K"]  # the cluster id of each prototype
    frozen_backbone: FrozenBackbone | None = None  # the frozen pretrained network, if there is one
    names: Mapping[int, str | None] | None = None  # of the clusters by id, after corrections
    limits: Float[np.ndarray, " K"] | None = None  # distances from the prototypes beyond which images are rejected
    regrouped: bool = False  # corrections changed the clusters, so that the cluster head cannot represent them

    @classmethod
    def from_run(cls, run: Run, device: torch.device, snapshot: int | None = None) -> Model:
        """Load a finished run's model with its corrected clusters."""
        run.refuse_all_junk()
        return cls.uncorrected(run, device, snapshot).corrected(run.corrected)

    def corrected(self, corrected: CorrectedRun) -> Model:
        """Return the model with the corrected clusters."""
        if not corrected.edited:
            return self
        prototypes = torch.from_numpy(corrected.prototypes.vectors).to(self.prototypes.device)
        names, regrouped = corrected.names(), corrected.regrouped
        return replace(self, prototypes=prototypes, ids=corrected.prototypes.ids, names=names, regrouped=regrouped)

    @classmethod
    def uncorrected(cls, run: Run, device: torch.device, snapshot: int | None = None) -> Model:
        """Load a finished run's model without corrections, or with the weights of a kept epoch."""
        config = run.config
        weights = {name: torch.from_numpy(array) for name, array in run.weights(snapshot).items()}
        check_weights(config, weights, run.weights_file(snapshot))
        method = build_method(config, input_channels(config))
        load_weights(method, weights)
        prototypes = torch.from_numpy(run.prototypes.vectors)
        frozen_backbone = _frozen_backbone(config, run.path / BACKBONE)
        return cls(config, method.to(device), prototypes.to(device), run.prototypes.ids, frozen_backbone)

    @property
    def encoder(self) -> Encoder:
        """The encoder whose outputs are the embeddings."""
        return self.method.embedder

    @property
    def by_head(self) -> bool:
        """Whether the cluster head assigns images, instead of the nearest prototype."""
        stages = stages_of(self.config)
        return bool(stages) and stages[-1].decides == "head" and not self.regrouped

    @property
    def channels(self) -> int:
        """The number of channels of its images."""
        assert self.config.pixels.mean is not None
        return len(self.config.pixels.mean)

    def embed(self, source: Source, which: slice | None = None) -> Iterator[Float[Tensor, "B D"]]:
        """Yield the embeddings of a source's images, or of some of them, in order, a batch at a time."""
        source = self.inputs(source)
        return _finite(embed_batches(self.encoder, source, self.config, which), source)

    def embeddings(self, source: Source) -> Float[Tensor, "N D"]:
        """Return the embeddings of a source's images: ℓ2-normalised projections."""
        return _whole(self.embed(source), source)

    def online_projections(self, source: Source) -> Float[Tensor, "N D"]:
        """Return the raw projections of a source's images by the online network, to which training adds noise."""
        return self._outputs(self.method.online, self.inputs(source))

    def features(self, source: Source) -> Float[Tensor, "N F"]:
        """Return the backbone's features of a source's images, before the projector, by the embedder."""
        return self._outputs(self.encoder.backbone, self.inputs(source))

    def _outputs(self, network: nn.Module, source: Source) -> Float[Tensor, "N D"]:
        return _whole(_finite(output_batches(network, self.encoder.device, source, self.config), source), source)

    def inputs(self, source: Source) -> Source:
        """Check images and return them as inputs of the network."""
        if isinstance(source, FeatureSource):
            return source
        if source.channels != self.channels:
            raise InputError(
                f"{source.name}: contains {KINDS[source.channels]} images; this run was trained on "
                f"{KINDS[self.channels]} ones: convert them first"
            )
        return as_features(self.frozen_backbone, source, self.encoder.device)

    def predict(self, source: Source) -> Prediction:
        """Assign each image to a cluster."""
        return _joined(list(self.predict_batches(source)))

    def predict_batches(self, source: Source, which: slice | None = None) -> Iterator[Prediction]:
        """Assign images to the cluster of their nearest prototype, or by the head, a batch at a time, in order."""
        if self.by_head:
            yield from self._predict_by_head(source, which)
            return
        for embeddings in self.embed(source, which):
            rows, cosines = assign(embeddings, self.prototypes)
            yield predict_from_cosines(cosines, rows, self.ids)

    def _predict_by_head(self, source: Source, which: slice | None) -> Iterator[Prediction]:
        source = self.inputs(source)
        for embeddings, _, assignments in method_output_batches(self.method, source, self.config, which):
            assert assignments is not None
            confidence, rows = assignments.max(dim=1)
            yield predict_from_cosines(embeddings @ self.prototypes.T, rows, self.ids, confidence)

    def rejecting(self, prediction: Prediction) -> Prediction:
        """Return a prediction in which images beyond the limits have cluster −1, if there are limits."""
        if self.limits is None:
            return prediction
        limit = self.limits[rows_of(prediction.cluster, self.ids)]
        return replace(prediction, cluster=np.where(prediction.distance > limit, JUNK, prediction.cluster))

    def tabulate(self, source: Source, which: slice | None = None) -> Rows:
        """Yield the rows of the images, or of some of them, in order, a batch at a time, without unreadable images."""
        names, done = source.image_names(), 0 if which is None else which.start
        for found in self.predict_batches(source, which):
            prediction = self.rejecting(found)
            here = np.arange(done, done + len(prediction.cluster))
            good = readable(source, here)
            yield ImageTable(
                images=[names[position] for position in here[good]],
                cluster=prediction.cluster[good],
                confidence=prediction.confidence[good],
                distance=prediction.distance[good],
                label=None if source.labels is None else source.labels[here[good]],
                name=None
                if self.names is None
                else [self.names.get(each) for each in prediction.cluster[good].tolist()],
            )
            done += len(here)


@dataclass(frozen=True)
class Fitted:
    """The results of training."""

    model: Model
    table: ImageTable
    embeddings: Float[np.ndarray, "N D"]
    history: list[Record]
    edits: tuple[Edit, ...] = ()  # corrections, of this run or of the earlier one; all other fields are without them
    tree: Tree | None = None  # of the clusters, which cuts among the edits refer to

    @classmethod
    def from_run(cls, run: Run, device: torch.device) -> Fitted:
        """Read the results of a finished run."""
        model, edits = Model.uncorrected(run, device), tuple(run.edits.edits)
        return cls(model, run.table, run.embeddings, run.history, edits, run.tree())

    def corrected(self) -> CorrectedRun:
        """Return the corrected table and clusters; refuse corrections that leave no cluster."""
        prototypes = Prototypes(self.model.prototypes.cpu().numpy(), self.model.ids)
        corrected = correct(self.table, prototypes, lambda: self.embeddings, self.edits, self.tree)
        if corrected.junk.all():
            raise InputError(f"{EDITS}: leave no cluster: every image is junk; undo some of them")
        return corrected

    def write(self, run: RunFolder) -> None:
        """Write the results into a run folder."""
        run.write_weights(weights_of(self.model.method))
        if self.model.frozen_backbone is not None:  # so that predictions need only the run folder
            state = self.model.frozen_backbone.weights.state
            run.write_weights({name: tensor.numpy() for name, tensor in state.items()}, BACKBONE)
        run.write_array("prototypes.npy", self.model.prototypes.cpu().numpy())
        run.write_array("embeddings.npy", self.embeddings)
        run.write_history(self.history)
        run.write_images(self.table)
        if self.edits:
            EditLog(run.path, self.model.ids).append(enumerate(self.edits, start=1), EDITS)


def fitted(
    learner: Learner, source: Source, answer: Assignment, history: list[Record], corrections: Corrections | None = None
) -> Fitted:
    """Return the results of training after the last E-step; of several processes only the first has the embeddings.

    Excluded images have the nearest cluster in the table, and edits mark them as junk.
    """
    images = len(source)
    local = predict_from_embeddings(
        answer.embeddings, answer.prototypes, answer.labels[share(images)], answer.confidence
    )
    embeddings = gather_on_first(answer.embeddings, images)
    cluster, confidence, distance = (
        gather(torch.from_numpy(column), images).numpy() for column in (local.cluster, local.confidence, local.distance)
    )
    table = ImageTable(
        images=list(source.image_names()),
        cluster=cluster,
        confidence=confidence,
        distance=distance,
        label=source.labels,
    )
    ids, frozen_backbone = np.arange(len(answer.prototypes)), frozen_backbone_of(learner.config)
    model = Model(learner.config, learner.method, answer.prototypes, ids, frozen_backbone)
    rows = answer.embeddings[:0] if embeddings is None else embeddings
    edits = () if corrections is None else corrections.edits(table.images)
    return Fitted(model, table, rows.cpu().numpy(), history, edits)


def weights_of(method: Method) -> dict[str, np.ndarray]:
    """Return a method's weights as arrays, without memories."""
    return {name: tensor.detach().cpu().contiguous().numpy() for name, tensor in weight_tensors(method).items()}


def weight_tensors(method: Method) -> dict[str, Tensor]:
    """Return a method's weights by name, without memories."""
    memories = tuple(memories_of(method))
    return {name: tensor for name, tensor in method.state_dict().items() if not is_part(name, memories)}


def load_weights(method: Method, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into a method of the same shape."""
    with torch.no_grad():
        for name, tensor in weight_tensors(method).items():
            tensor.copy_(weights[name])


def check_weights(config: Config, weights: Mapping[str, Tensor], path: Path) -> None:
    """Refuse weights that do not fit the network of the settings."""
    with torch.device("meta"):  # no memory is allocated before the sizes are checked
        expected = weight_tensors(build_method(config, input_channels(config)))
    for name in sorted(expected.keys() | weights.keys()):
        if name not in weights:
            raise InputError(f"{path}: {name} is missing, which the network of config.yaml has")
        if name not in expected:
            raise InputError(
                f"{path}: contains {shown(name, quoted=False)}, which the network of config.yaml does not have"
            )
        was, wanted = weights[name], expected[name]
        if was.shape != wanted.shape or was.dtype != wanted.dtype:
            raise InputError(f"{path}: {name} is {_kind(was)}; the network of config.yaml has {_kind(wanted)}")


def _whole(batches: Iterator[Tensor], source: Source) -> Tensor:
    """Return a network's outputs for a source's images in one table."""
    (table,) = collect(((batch,) for batch in batches), len(source))
    return table


def _finite(batches: Iterator[Tensor], source: Source) -> Iterator[Tensor]:
    """Yield a network's outputs; refuse NaN and infinity."""
    for batch in batches:
        if not bool(torch.isfinite(batch).all()):
            raise InputError(f"{source.name}: the run's network returns NaN: model.safetensors is damaged")
        yield batch


def _frozen_backbone(config: Config, path: Path) -> FrozenBackbone | None:
    """Return the frozen pretrained network of a run from the run's copy, if it has one."""
    start = config.start
    if not start.has_frozen_part:
        return None
    return FrozenBackbone(read_copy(start, path), start.learns == "last")


def _kind(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
