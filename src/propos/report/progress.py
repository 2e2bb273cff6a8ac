"""How the report says how far it is."""

from __future__ import annotations

from propos.runner.sources import Progress, Working, unseen

__all__ = ["Progress", "Working", "unseen"]
