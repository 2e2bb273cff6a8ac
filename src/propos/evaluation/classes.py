"""Labels of any kind as the numbers of classes, alike for the images learnt from and those tested on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, Shaped

from propos.common.errors import InputError

UNKNOWN = -1  # the class of a test image whose label no training image has: never predicted, so always wrong


@dataclass(frozen=True)
class Classes:
    """The distinct labels of a set of images, as text: 3 in one file is the '3' of another."""

    names: Shaped[np.ndarray, " C"]

    @classmethod
    def from_labels(cls, labels: Shaped[np.ndarray, " N"]) -> Classes:
        """Return the classes of these labels; there must be two."""
        names = np.unique(np.asarray(labels).astype(str))
        if len(names) < 2:
            raise InputError("the images all have the same label: a classifier needs two classes")
        return cls(names)

    def numbers(self, labels: Shaped[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
        """Return the number of each label's class, −1 for labels that are none of these."""
        text = np.asarray(labels).astype(str)
        places = np.minimum(np.searchsorted(self.names, text), len(self.names) - 1)
        numbers: Int[np.ndarray, " N"] = np.where(self.names[places] == text, places, UNKNOWN)
        if len(numbers) and (numbers == UNKNOWN).all():
            raise InputError(
                f"the test images' labels ({text[0]}, …) are none of the run's ({self.names[0]}, …): name them alike"
            )
        return numbers
