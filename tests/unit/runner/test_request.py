"""What a person can ask for is the same on the command line and in Python."""

import inspect
from dataclasses import fields

import pytest

import propos
from propos.cli.run import run as command
from propos.common.errors import InputError
from propos.runner import Length, Origin, Output, Request
from propos.runner.request import requested_settings

ON_THE_COMMAND_LINE = {"budget": "time"}  # `time` is a module there
IN_PYTHON = {"k": "clusters"}
OF_THE_TERMINAL = {"resume", "device", "quiet", "report"}  # how to run, not what


def test_options_and_keywords_are_those_of_a_request():
    groups = {"length": Length, "origin": Origin, "output": Output}
    grouped = {field.name for group in groups.values() for field in fields(group)}
    asked = {field.name for field in fields(Request)} - set(groups) | grouped - {"command"}
    options = {ON_THE_COMMAND_LINE.get(name, name) for name in inspect.signature(command).parameters}
    assert options - OF_THE_TERMINAL == asked
    keywords = {IN_PYTHON.get(name, name) for name in inspect.signature(propos.run).parameters} - {"more_settings"}
    assert keywords - OF_THE_TERMINAL == asked


def test_a_table_of_labels_is_for_evaluate():
    said = r"--labels truth\.csv: a run takes only folders .* propos evaluate RUN --labels truth\.csv$"
    with pytest.raises(InputError, match=said):
        requested_settings(Request(source="photos", labels="truth.csv"), "photos", None)
