"""Keep what tables and curves need of finished cells, as small text: python docs/keep_cells.py OUT docs/study.

`propos reproduce ID --budget small --no-train --out docs/study` then makes tables and figures of the cells kept so far.
"""

import json
import sys
from pathlib import Path

from propos.runs import Run, RunFolder

OF_THE_MACHINE = ("command", "machine", "job")


def main(out: Path, study: Path) -> None:
    for path in sorted((out / "cells").iterdir()):
        if (path / "run.json").is_file() and Run.open(path).finished:
            keep(Run.open(path), study / "cells" / path.name)


def keep(run: Run, folder: Path) -> None:
    """Write settings, facts and history, without what says where they were made; what is kept already stays."""
    if (folder / "run.json").is_file():
        return
    info = {key: value for key, value in run.info.plain().items() if key not in OF_THE_MACHINE}
    info["source"] = {**info["source"], "root": None}
    kept = RunFolder.create(folder, info, run.config.with_settings({"source": None, "data": None}))
    kept.write_history(json.loads(json.dumps(run.history)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
