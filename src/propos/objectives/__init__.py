"""One loss per file: the bare mathematics as a function, and the module that picks its tensors."""

from propos.objectives.alignment import Alignment, alignment
from propos.objectives.outputs import Objective, Outputs
from propos.objectives.prototype_scattering import PrototypeScattering, prototype_scattering

__all__ = ["Alignment", "Objective", "Outputs", "PrototypeScattering", "alignment", "prototype_scattering"]
