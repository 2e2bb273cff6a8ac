"""ProPos as a scikit-learn estimator."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from jaxtyping import Float, Int, Shaped
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from propos.common.errors import InputError
from propos.config import Config
from propos.data import Source, What
from propos.data.arrays import check_labels
from propos.evaluation import nmi
from propos.methods import complete_sections
from propos.runner import Length, Output, Request, SilentReporter, execute_plan, open_like, plan, save
from propos.runner.recipes import RECIPES, build_recipe
from propos.runs import JUNK, Run, rows_of
from propos.training import Fitted, Model, choose_device

Images = ArrayLike | str | Path


class ProPos(ClusterMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Cluster images with ProPos.

    Images are an array (N, H, W) or (N, H, W, C) of uint8 or float, a folder, a list of paths, or anything
    else that `propos run` takes. `n_clusters` defaults to the number of labels; without labels a number is suggested.
    `settings` has dotted keys, as `--set`. With `run_folder`, progress is saved there: fitting again with the same
    images and parameters resumes the run, or reads it if it is finished.
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        method: str = "propos",
        recipe: str | None = None,
        epochs: int | None = None,
        settings: Mapping[str, Any] | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        run_folder: str | Path | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.method = method
        self.recipe = recipe
        self.epochs = epochs
        self.settings = settings
        self.device = device
        self.random_state = random_state
        self.run_folder = run_folder

    def fit(self, X: Images, y: Shaped[np.ndarray, " N"] | None = None) -> Self:
        """Learn clusters from images; y, if given, only scores the epochs in `history_`."""
        folder = None if self.run_folder is None else Path(self.run_folder)
        reporter = SilentReporter(warn=partial(warnings.warn, stacklevel=4))
        with plan(self._request(X, y), self.device, reporter) as planned:
            info, begin = planned.info(), time.monotonic()
            fitted = execute_plan(planned, folder, reporter)
            info |= {"status": "finished", "seconds": time.monotonic() - begin}
        self._keep(fitted, info if folder is None else Run.open(folder).info.plain())
        return self

    def _request(self, X: Images, y: Shaped[np.ndarray, " N"] | None) -> Request:
        """Return the request for these parameters."""
        settings = dict(self.settings or {})
        doubled = {"clusters", "method", "seed"} & set(settings)
        if doubled:
            raise InputError(f"settings: {', '.join(sorted(doubled))}: these are parameters of ProPos itself")
        root = settings.pop("data", None)
        if self.n_clusters is not None:
            settings["clusters"] = int(self.n_clusters)  # together with a range, it is a number that was suggested
        return Request(
            source=_what(X),
            method=self.method,
            recipe=self.recipe,
            seed=self._seed(),
            length=Length(epochs=self.epochs),
            settings=settings,
            labels=y,
            data=root,
            output=Output(command="ProPos.fit"),
        )

    def _seed(self) -> int:
        """Return the random seed; a resumed run keeps its own unless one is given."""
        folder = None if self.run_folder is None else Path(self.run_folder)
        if self.random_state is None and folder is not None and (folder / "run.json").is_file():
            return Run.open(folder).config.seed
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _keep(self, fitted: Fitted, info: dict[str, Any]) -> None:
        self.fitted_ = fitted
        self.info_ = info  # the contents of run.json
        self.config_ = fitted.model.config
        # As everywhere in scikit-learn, labels are rows of the centres; the table has the clusters' ids.
        # In a corrected run, both are as corrected, and junk is -1.
        corrected = fitted.corrected()
        self.model_ = fitted.model.corrected(corrected)
        self.labels_: Int[np.ndarray, " N"] = np.full(len(corrected.table.images), JUNK)
        kept = ~corrected.junk
        self.labels_[kept] = rows_of(corrected.table.cluster[kept], self.model_.ids)
        self.cluster_centers_: Float[np.ndarray, "K D"] = self.model_.prototypes.cpu().numpy()
        self.embedding_: Float[np.ndarray, "N D"] = fitted.embeddings
        self.history_ = fitted.history

    def predict(self, X: Images) -> Int[np.ndarray, " N"]:
        """Return the cluster of each image."""
        with self._images(X) as source:
            return rows_of(self._model().predict(source).cluster, self._model().ids)

    def transform(self, X: Images) -> Float[np.ndarray, "N D"]:
        """Return the embedding of each image: a unit vector."""
        with self._images(X) as source:
            return np.concatenate([batch.cpu().numpy() for batch in self._model().embed(source)])

    def fit_predict(self, X: Images, y: Shaped[np.ndarray, " N"] | None = None) -> Int[np.ndarray, " N"]:
        """Learn clusters and return the cluster of each image."""
        return self.fit(X, y).labels_

    def score(self, X: Images, y: Shaped[np.ndarray, " N"] | None = None) -> float:
        """Return the NMI of the images' clusters with their labels; without labels, minus their mean distance."""
        with self._images(X) as source:
            predicted = self._model().predict(source)
            labels = source.labels if y is None else check_labels(y, len(source), "y")
        return -float(predicted.distance.mean()) if labels is None else nmi(labels, predicted.cluster)

    def save(self, path: str | Path) -> None:
        """Write a run folder, as `propos run` does."""
        check_is_fitted(self, "fitted_")
        save(self.fitted_, self.info_, Path(path))

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> Self:
        """Read a run folder written by `save` or by `propos run`."""
        run = Run.open(Path(path))
        config = run.config
        recipe, settings = _changes_to_recipe(config)
        estimator = cls(
            config.clusters,
            method=config.method,
            recipe=recipe,
            epochs=config.train.epochs,
            settings=settings,
            device=device,
            random_state=config.seed,
        )
        estimator._keep(Fitted.from_run(run, choose_device(device)), run.info.plain())
        return estimator

    def _model(self) -> Model:
        check_is_fitted(self, "fitted_")
        return self.model_

    def _images(self, X: Images) -> AbstractContextManager[Source]:
        """Open images in the same way as the training images."""
        check_is_fitted(self, "fitted_")
        return open_like(self.config_, _what(X))


def _what(X: Images) -> What:
    """Return paths as strings, and anything else as an array of pixels."""
    if isinstance(X, str | Path):
        return str(X)
    if isinstance(X, list | tuple) and X and isinstance(X[0], str | Path):
        return [str(path) for path in X]
    return np.asarray(X)


def _recipe_of(config: Config) -> Config:
    """Return the complete settings of a run's recipe for its method and its number of epochs."""
    recipe = build_recipe(str(config.recipe), config.method, config.pretext)
    return complete_sections(recipe.with_epochs(config.train.epochs))


def _changes_to_recipe(config: Config) -> tuple[str | None, dict[str, Any]]:
    """Return the recipe of complete settings and those settings that differ from it.

    Pixel statistics are measured again. Without a known recipe, all other settings are returned.
    """
    recipe = config.recipe if config.recipe in RECIPES else None
    preset: dict[str, Any] = {"views.preset": config.views.preset}
    before = _recipe_of(config).with_settings(preset).flat() if recipe else {}
    own = ("source", "recipe", "labels", "method", "clusters", "seed")
    return recipe, preset | {
        key: value
        for key, value in config.flat().items()
        if key not in own and not key.startswith("pixels.") and (key not in before or before[key] != value)
    }
