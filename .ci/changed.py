"""Name the unit tests of the rooms that differ from the last commit: tests/unit/ROOM for src/propos/ROOM."""

import subprocess
from pathlib import Path

listed = ["git", "status", "--porcelain", "--untracked-files=all"]
changed = [Path(line[3:].split(" -> ")[-1]) for line in subprocess.check_output(listed, text=True).splitlines()]
rooms = {part.removesuffix(".py") for path in changed if path.parts[:2] == ("src", "propos") for part in path.parts[2:]}
tests = {path for path in changed if path.parts[:2] == ("tests", "unit") and path.name.startswith("test_")}
tests |= {Path("tests/unit") / room for room in rooms}
tests |= {Path("tests/unit") / f"test_{room}.py" for room in rooms}
print("\n".join(sorted(str(path) for path in tests if path.exists())))  # noqa: T201
