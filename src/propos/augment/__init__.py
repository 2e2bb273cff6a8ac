"""Random views of a batch, made on the device the batch is on."""

from propos.augment.draw import ViewDraw, draw_views
from propos.augment.frames import USUAL_CROP, Frames, Shapes, shapes_of
from propos.augment.invariance import Invariance, measure_invariance
from propos.augment.strong import StrongViews
from propos.augment.views import RandomViews, plain_view

__all__ = [
    "USUAL_CROP",
    "Frames",
    "Invariance",
    "RandomViews",
    "Shapes",
    "StrongViews",
    "ViewDraw",
    "draw_views",
    "measure_invariance",
    "plain_view",
    "shapes_of",
]
