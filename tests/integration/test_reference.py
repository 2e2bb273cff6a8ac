"""The generated pages of the documentation agree with the code."""

import re
import runpy
from pathlib import Path

import pytest

from propos.methods import method_names

DOCS = Path(__file__).parents[2] / "docs"
PAGES = runpy.run_path(str(DOCS / "reference.py"))["PAGES"]
OF_METHODS = "## Settings of methods"


def of_existing_methods(page):
    """Return a page without the defaults of methods that were deleted since it was written."""
    shared, heading, table = page.partition(OF_METHODS)
    lines = []
    for line in table.splitlines():
        if line.startswith("| `"):
            rest, _, defaults = line.removesuffix(" |").rpartition(" | ")
            kept = [each for each in re.split(", (?=`)", defaults) if each.split("`")[1] in method_names()]
            line = f"{rest} | {', '.join(kept)} |" if kept else None
        lines += [] if line is None else [line + "\n"]
    return shared + heading + "".join(lines)


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name):
    assert of_existing_methods((DOCS / name).read_text()) == PAGES[name](), "run python docs/reference.py"
