"""Methods: each names its network's parts and the stages that train them."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace

from propos.config import Config
from propos.errors import InputError
from propos.methods.about import ABOUT, About
from propos.methods.baselines import kmeans_features, kmeans_pixels, kmeans_random
from propos.methods.byol import byol
from propos.methods.byol_cc import byol_cc
from propos.methods.byol_pcl import byol_pcl
from propos.methods.cc import cc
from propos.methods.cc_psl import cc_psl
from propos.methods.conr import conr
from propos.methods.dcboost import dcboost
from propos.methods.dccm import dccm
from propos.methods.dec import dec
from propos.methods.deepcluster import deepcluster
from propos.methods.gcc import gcc
from propos.methods.idec import idec
from propos.methods.idfd import idfd
from propos.methods.iic import iic
from propos.methods.localagg import localagg
from propos.methods.method import BankSpec, FurtherClusterings, Method, Pairing, QueueSpec, Stage, Term
from propos.methods.mice import mice
from propos.methods.moco import moco
from propos.methods.nnm import nnm
from propos.methods.pcl import pcl
from propos.methods.pica import pica
from propos.methods.preparations import (
    AgreedLabels,
    Confident,
    Features,
    NearestAnswers,
    Neighbours,
    NeighbourWeights,
    Preparation,
    PrototypeLabels,
    Seen,
    Sharpened,
    SureLabels,
)
from propos.methods.propos import propos
from propos.methods.propos_alignment_only import propos_alignment_only
from propos.methods.propos_no_psa import propos_no_psa
from propos.methods.propos_no_psl import propos_no_psl
from propos.methods.propos_uniformity_only import propos_uniformity_only
from propos.methods.scan import scan
from propos.methods.secu import secu
from propos.methods.simclr import simclr
from propos.methods.simsiam import simsiam
from propos.methods.spice import spice
from propos.methods.swav import swav
from propos.methods.tcl import tcl
from propos.methods.temi import temi

__all__ = [
    "ABOUT",
    "FEATURES_ALONE",
    "METHODS",
    "OF_FEATURES",
    "About",
    "AgreedLabels",
    "BankSpec",
    "Confident",
    "Features",
    "FurtherClusterings",
    "Method",
    "NearestAnswers",
    "NeighbourWeights",
    "Neighbours",
    "Pairing",
    "Preparation",
    "PrototypeLabels",
    "QueueSpec",
    "Seen",
    "Sharpened",
    "Stage",
    "SureLabels",
    "Term",
    "build_method",
    "check_method",
    "describe",
]

METHODS: dict[str, Callable[[Config], Method]] = {
    "propos": propos,
    "propos-no-psl": propos_no_psl,
    "propos-no-psa": propos_no_psa,
    "propos-alignment-only": propos_alignment_only,
    "propos-uniformity-only": propos_uniformity_only,
    "byol": byol,
    "simsiam": simsiam,
    "simclr": simclr,
    "moco": moco,
    "pcl": pcl,
    "cc": cc,
    "cc-psl": cc_psl,
    "byol-cc": byol_cc,
    "byol-pcl": byol_pcl,
    "scan": scan,
    "nnm": nnm,
    "temi": temi,
    "spice": spice,
    "dcboost": dcboost,
    "conr": conr,
    "dec": dec,
    "idec": idec,
    "deepcluster": deepcluster,
    "dccm": dccm,
    "iic": iic,
    "pica": pica,
    "swav": swav,
    "idfd": idfd,
    "gcc": gcc,
    "tcl": tcl,
    "secu": secu,
    "localagg": localagg,
    "mice": mice,
    "kmeans-features": kmeans_features,
    "kmeans-pixels": kmeans_pixels,
    "kmeans-random": kmeans_random,
}


OF_FEATURES = ("kmeans-features", "propos", "temi", "dcboost")  # what a pretrained start goes with


FEATURES_ALONE = ("kmeans-features",)  # and what goes with nothing else


def check_method(name: str, said: str = "--method") -> None:
    """Refuse a method that does not exist; `said` is how it was asked for."""
    if name not in METHODS:
        near = difflib.get_close_matches(name, METHODS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(METHODS)}"
        raise InputError(f"{said} {name}: there is none of this name: {hint}")


def build_method(config: Config) -> Method:
    """Build the method that complete settings name."""
    check_method(config.method)
    _check_start(config)
    method = METHODS[config.method](config)
    if not config.train.balanced:
        return method
    return replace(method, stages=tuple(replace(stage, balanced=True) for stage in method.stages))


def _check_start(config: Config) -> None:
    """Refuse methods that learn from images where there are only features, and the other way round."""
    of_features = config.method in OF_FEATURES
    if config.start.network is not None and not of_features:
        raise InputError(
            f"--method {config.method}: learns from images, not from a pretrained network's features: "
            f"use --start scratch, or one of {', '.join(OF_FEATURES)}"
        )
    if config.start.network is not None and config.network.backbone != "whitened":
        raise InputError(
            f"network.backbone = {config.network.backbone}: the backbone is the pretrained {config.start.network}: "
            "use --start scratch to learn with another"
        )
    if config.start.learns != "nothing" and (config.start.network is None or config.method != "propos"):
        raise InputError(
            f"start.learns = {config.start.learns}: it is ProPos that tunes a pretrained network: use --start "
            "pretrained and --method propos"
        )
    if config.start.network is None and config.method in FEATURES_ALONE:
        raise InputError(f"--method {config.method}: needs a pretrained network: use --start pretrained")


def describe(name: str) -> str:
    """Return a method in one line."""
    return (METHODS[name].__doc__ or "").strip().splitlines()[0]
