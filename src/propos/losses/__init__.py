"""Losses that two or more methods share: pure functions of tensors."""

from propos.losses.alignment import alignment
from propos.losses.classification import balanced_cross_entropy, self_labelling, thresholds
from propos.losses.cluster_balance import cluster_balance
from propos.losses.cluster_contrast import cluster_contrast
from propos.losses.cluster_matching import cluster_matching
from propos.losses.common import both_ways, log_prob, symmetric
from propos.losses.confident import confident_labels, confident_pull
from propos.losses.info_nce import info_nce
from propos.losses.instance_softmax import instance_softmax
from propos.losses.neighbour_agreement import neighbour_agreement
from propos.losses.nt_xent import nt_xent
from propos.losses.proto_nce import counts_in_batch, proto_nce
from propos.losses.prototype_scattering import prototype_scattering
from propos.losses.prototypes import mean_of_present, membership, prototypes

__all__ = [
    "alignment",
    "balanced_cross_entropy",
    "both_ways",
    "cluster_balance",
    "cluster_contrast",
    "cluster_matching",
    "confident_labels",
    "confident_pull",
    "counts_in_batch",
    "info_nce",
    "instance_softmax",
    "log_prob",
    "mean_of_present",
    "membership",
    "neighbour_agreement",
    "nt_xent",
    "proto_nce",
    "prototype_scattering",
    "prototypes",
    "self_labelling",
    "symmetric",
    "thresholds",
]
