"""One loss per file: the bare mathematics as a function, and the module that picks its tensors."""

from propos.objectives.alignment import Alignment, alignment
from propos.objectives.answered_graph import AnsweredGraph, answered_graph
from propos.objectives.answered_labels import AnsweredLabels, answered_labels
from propos.objectives.centre_agreement import CentreAgreement, centre_agreement
from propos.objectives.centre_learning import CentreLearning, centre_learning
from propos.objectives.cluster_balance import ClusterBalance, cluster_balance
from propos.objectives.cluster_contrast import ClusterContrast, cluster_contrast
from propos.objectives.cluster_matching import ClusterMatching, cluster_matching
from propos.objectives.confident_pull import ConfidentPull, confident_pull
from propos.objectives.confident_push import ConfidentPush, confident_push
from propos.objectives.contrastive_experts import ContrastiveExperts, contrastive_experts
from propos.objectives.feature_decorrelation import FeatureDecorrelation, feature_decorrelation
from propos.objectives.given_labels import GivenLabels, given_labels
from propos.objectives.graph_contrast import GraphContrast, graph_contrast
from propos.objectives.heads import ChosenHead, EachHead, OverHeads
from propos.objectives.info_nce import InfoNce, info_nce
from propos.objectives.instance_softmax import InstanceSoftmax, instance_softmax
from propos.objectives.labelled_contrast import LabelledContrast, labelled_contrast
from propos.objectives.local_aggregation import LocalAggregation, local_aggregation
from propos.objectives.local_information import LocalInformation, local_information
from propos.objectives.mutual_information import MutualInformation, mutual_information
from propos.objectives.nearest import NearestInBatch, NearestOfAll
from propos.objectives.negative_cosine import NegativeCosine, negative_cosine
from propos.objectives.neighbour_agreement import NeighbourAgreement, neighbour_agreement
from propos.objectives.neighbour_alignment import NeighbourAlignment, neighbour_alignment
from propos.objectives.nt_xent import NtXent, nt_xent
from propos.objectives.objective import Objective
from propos.objectives.proto_nce import ProtoNce, proto_nce
from propos.objectives.prototype_alignment import PrototypeAlignment, prototype_alignment
from propos.objectives.prototype_scattering import PrototypeScattering, prototype_scattering
from propos.objectives.prototype_uniformity import PrototypeUniformity, prototype_uniformity
from propos.objectives.pseudo_labels import PseudoLabels, pseudo_labels
from propos.objectives.reconstruction import Reconstruction, reconstruction
from propos.objectives.self_label import SelfLabel, self_label
from propos.objectives.several_labels import SeveralLabels, several_labels
from propos.objectives.sharpening import Sharpening, sharpening
from propos.objectives.sinkhorn import sinkhorn
from propos.objectives.swapped_codes import SwappedCodes, swapped_codes
from propos.objectives.weighted_information import WeightedInformation, weighted_information
from propos.outputs import Bank, CentreSet, Grouping, Outputs, Queue

__all__ = [
    "Alignment",
    "AnsweredGraph",
    "AnsweredLabels",
    "Bank",
    "CentreAgreement",
    "CentreLearning",
    "CentreSet",
    "ChosenHead",
    "ClusterBalance",
    "ClusterContrast",
    "ClusterMatching",
    "ConfidentPull",
    "ConfidentPush",
    "ContrastiveExperts",
    "EachHead",
    "FeatureDecorrelation",
    "GivenLabels",
    "GraphContrast",
    "Grouping",
    "InfoNce",
    "InstanceSoftmax",
    "LabelledContrast",
    "LocalAggregation",
    "LocalInformation",
    "MutualInformation",
    "NearestInBatch",
    "NearestOfAll",
    "NegativeCosine",
    "NeighbourAgreement",
    "NeighbourAlignment",
    "NtXent",
    "Objective",
    "Outputs",
    "OverHeads",
    "ProtoNce",
    "PrototypeAlignment",
    "PrototypeScattering",
    "PrototypeUniformity",
    "PseudoLabels",
    "Queue",
    "Reconstruction",
    "SelfLabel",
    "SeveralLabels",
    "Sharpening",
    "SwappedCodes",
    "WeightedInformation",
    "alignment",
    "answered_graph",
    "answered_labels",
    "centre_agreement",
    "centre_learning",
    "cluster_balance",
    "cluster_contrast",
    "cluster_matching",
    "confident_pull",
    "confident_push",
    "contrastive_experts",
    "feature_decorrelation",
    "given_labels",
    "graph_contrast",
    "info_nce",
    "instance_softmax",
    "labelled_contrast",
    "local_aggregation",
    "local_information",
    "mutual_information",
    "negative_cosine",
    "neighbour_agreement",
    "neighbour_alignment",
    "nt_xent",
    "proto_nce",
    "prototype_alignment",
    "prototype_scattering",
    "prototype_uniformity",
    "pseudo_labels",
    "reconstruction",
    "self_label",
    "several_labels",
    "sharpening",
    "sinkhorn",
    "swapped_codes",
    "weighted_information",
]
