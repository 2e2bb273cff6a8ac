"""Write the live demo into the site: python docs/demo.py SITE [EPOCHS].

Two real runs, whose pages are copied to SITE/demo: scikit-learn's digits, trained for a minute, and the scenes that
examples/photos.py draws, clustered by a pretrained network's features. The scenes are read from a zip, so their page
contains no path of this machine.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

SCENES = Path(__file__).parents[1] / "examples" / "photos.py"
EPOCHS = "20"


def main(site: Path, epochs: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, SCENES, "photos"], cwd=folder, check=True)
        with zipfile.ZipFile(folder / "scenes.zip", "w") as archive:
            for path in sorted((folder / "photos").iterdir()):
                archive.write(path, path.name)
        cluster(folder, "digits", "--epochs", epochs)
        cluster(folder, "scenes.zip", "-k", "8", "--start", "pretrained")
        for run, target in (("digits-1", "digits"), ("scenes-1", "scenes")):
            shutil.rmtree(site / "demo" / target, ignore_errors=True)
            shutil.copytree(folder / "runs" / run / "report", site / "demo" / target)


def cluster(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "propos", "run", *words, "--quiet"], cwd=folder, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2] if len(sys.argv) > 2 else EPOCHS)
