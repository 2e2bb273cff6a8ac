"""What the documentation shows runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.hold import PATIENCE

DOCS = Path(__file__).parents[2] / "docs"


def code_blocks(page):
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL)


@pytest.mark.parametrize(("place", "lines"), [(0, 40), (1, 60)], ids=["one stage", "two stages"])
def test_the_methods_of_the_documentation_are_short_and_train(tmp_path, place, lines):
    block = code_blocks("methods.md")[place]
    assert len(block.splitlines()) < lines
    script = tmp_path / "method.py"
    script.write_text(block)
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    # An untrained network's embeddings give 0.4 to 0.5 on digits.
    assert float(done.stdout.split()[-1]) > 0.55, done.stdout
