"""Optimisers that torch does not have."""

from propos.optimisers.lars import Lars, lars_groups

__all__ = ["Lars", "lars_groups"]
