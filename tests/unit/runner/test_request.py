"""What a person can ask for is the same on the command line and in Python."""

import inspect
from dataclasses import fields

import propos
from propos.cli.run import run as command
from propos.runner import Length, Origin, Output, Request

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
