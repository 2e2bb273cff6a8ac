"""Finding files that are RGB but contain no colour, by the pixels of a sample."""

from __future__ import annotations

from dataclasses import replace

from propos.data.sample import Sample

COUNT, SIDE = 200, 64
TINT = 3  # of 255: the difference that rounding leaves between equal channels


def without_colours(sample: Sample) -> Sample:
    """Return the sample as greyscale if its files are stored in colour and none of those looked at contains any."""
    if sample.unopened.scan is None or sample.unopened.channels == 1:
        return sample
    found = False
    for image in sample.files(COUNT, SIDE):
        if int((image.max(axis=2) - image.min(axis=2)).max()) > TINT:
            return sample
        found = True
    return replace(sample, unopened=replace(sample.unopened, channels=1)) if found else sample
