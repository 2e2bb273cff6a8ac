"""Methods: each is one class in one file, which owns its settings, networks and losses."""

from propos.config import method_names
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.images import AllImages, Clustered
from propos.methods.registry import (
    build_method,
    check_inputs,
    check_method,
    complete_sections,
    describe,
    describe_method,
    find_method,
    register_method,
    settings_of,
    stages_of,
)
from propos.methods.setup import Setup
from propos.methods.stage import Rate, Stage, Start

__all__ = [
    "AllImages",
    "Batch",
    "Clustered",
    "Method",
    "MethodSettings",
    "Rate",
    "Setup",
    "Stage",
    "Start",
    "StepContext",
    "build_method",
    "check_inputs",
    "check_method",
    "complete_sections",
    "describe",
    "describe_method",
    "find_method",
    "method_names",
    "register_method",
    "settings_of",
    "stages_of",
]
