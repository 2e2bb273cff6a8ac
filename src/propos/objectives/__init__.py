"""One loss per file: the bare mathematics as a function, and the module that picks its tensors."""

from propos.objectives.alignment import Alignment, alignment
from propos.objectives.cluster_balance import ClusterBalance, cluster_balance
from propos.objectives.cluster_contrast import ClusterContrast, cluster_contrast
from propos.objectives.info_nce import InfoNce, info_nce
from propos.objectives.negative_cosine import NegativeCosine, negative_cosine
from propos.objectives.nt_xent import NtXent, nt_xent
from propos.objectives.objective import Objective
from propos.objectives.proto_nce import ProtoNce, proto_nce
from propos.objectives.prototype_alignment import PrototypeAlignment, prototype_alignment
from propos.objectives.prototype_scattering import PrototypeScattering, prototype_scattering
from propos.objectives.prototype_uniformity import PrototypeUniformity, prototype_uniformity
from propos.outputs import Grouping, Outputs, Queue

__all__ = [
    "Alignment",
    "ClusterBalance",
    "ClusterContrast",
    "Grouping",
    "InfoNce",
    "NegativeCosine",
    "NtXent",
    "Objective",
    "Outputs",
    "ProtoNce",
    "PrototypeAlignment",
    "PrototypeScattering",
    "PrototypeUniformity",
    "Queue",
    "alignment",
    "cluster_balance",
    "cluster_contrast",
    "info_nce",
    "negative_cosine",
    "nt_xent",
    "proto_nce",
    "prototype_alignment",
    "prototype_scattering",
    "prototype_uniformity",
]
