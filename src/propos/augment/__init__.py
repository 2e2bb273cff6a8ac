"""Random views of a batch, made on the device the batch is on."""

from propos.augment.draw import ViewDraw, draw_views
from propos.augment.views import RandomViews, plain_view

__all__ = ["RandomViews", "ViewDraw", "draw_views", "plain_view"]
