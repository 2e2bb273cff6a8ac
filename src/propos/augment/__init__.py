"""Random views of a batch, made on the device the batch is on."""

from propos.augment.draw import ViewDraw, draw_views
from propos.augment.frames import USUAL_CROP, Frames, Shapes, shapes_of
from propos.augment.invariance import Kept, ask_what_is_kept
from propos.augment.strong import StrongViews
from propos.augment.views import RandomViews, plain_view

__all__ = [
    "USUAL_CROP",
    "Frames",
    "Kept",
    "RandomViews",
    "Shapes",
    "StrongViews",
    "ViewDraw",
    "ask_what_is_kept",
    "draw_views",
    "plain_view",
    "shapes_of",
]
