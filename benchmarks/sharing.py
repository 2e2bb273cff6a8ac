"""Compare two processes with one: `propos run` (its features) and `propos predict`, on photographs.

python benchmarks/sharing.py FOLDER [--images 1500] [--side 1280]

One process has one thread, and its decoders either the other core too, or, pinned to a core, none. Two processes, which
torchrun starts, have a thread each. A command also takes seconds to start: those of a set of few photographs, which are
subtracted in the second column. The third is the processor time of all processes, without that of the few: where two
processes need no more of it than one, two idle cores halve the time. The features and the tables must be the same
bytes. Run it on two idle cores.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from PIL import Image

FEW = 64
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
WAYS = {"one process": [], "one process on one core": [], "two processes": TORCHRUN}


def photographs(folder: Path, count: int, side: int | None, out: Path) -> Path:
    """Write as many photographs, evenly chosen, with a shorter side of so many pixels, or as they are."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    out.mkdir()
    for number in range(count):
        file = files[number * len(files) // count]
        target = out / f"{number:05d}.jpg"
        if side is None:
            target.write_bytes(file.read_bytes())
            continue
        with Image.open(file) as image:
            times = side / min(image.size)
            size = round(image.width * times), round(image.height * times)
            image.convert("RGB").resize(size, Image.Resampling.BICUBIC).save(target, quality=90)
    return out


def seconds(way: str, cache: Path, *command: object) -> tuple[float, float]:
    """Run a command with a cache of its own, and return its seconds on the clock and of the processor."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PROPOS_CACHE": str(cache)}
    core = min(os.sched_getaffinity(0))
    pin: Callable[[], None] | None = (lambda: os.sched_setaffinity(0, {core})) if "core" in way else None
    began, processor = time.perf_counter(), _of_children()
    words = [sys.executable, *WAYS[way], "-m", "propos", *map(str, command), "--device", "cpu", "--quiet"]
    subprocess.run(words, check=True, env=environment, preexec_fn=pin, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began, _of_children() - processor


def _of_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def measure(way: str, photos: Path, out: Path, run: Path) -> tuple[list[tuple[float, float]], list[bytes]]:
    """Return the seconds of a run and of predictions with `run`, the features and the table."""
    out.mkdir(parents=True)
    times = [seconds(way, out / "cache", "run", photos, "-k", 10, "--no-report", "--out", out / "run")]
    times.append(seconds(way, out / "other-cache", "predict", run, photos, "-o", out / "table.csv"))
    (features,) = (out / "cache").rglob("images.npy")
    return times, [features.read_bytes(), (out / "table.csv").read_bytes()]


def rows(few: Path, photos: Path, folder: Path) -> Iterator[str]:
    """Yield a line for each way of computing; all predict with the run of the first."""
    first: list[bytes] | None = None
    for number, way in enumerate(WAYS):
        start, _ = measure(way, few, folder / f"few-{number}", folder / "few-0" / "run")
        taken, results = measure(way, photos, folder / f"all-{number}", folder / "all-0" / "run")
        first = first or results
        run, predict = (
            f"{whole[0]:7.1f} s{whole[0] - least[0]:8.1f} s{whole[1] - least[1]:10.1f} s"
            for whole, least in zip(taken, start, strict=True)
        )
        yield f"{way:26}{run}{predict}   {'equal' if results == first else 'DIFFERENT'}"


def main() -> None:
    """Print the seconds of each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=1500)
    parser.add_argument("--side", type=int, help="of enlarged photographs, in pixels")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="propos-sharing-") as temporary:
        folder = Path(temporary)
        few = photographs(given.folder, FEW, given.side, folder / "few")
        photos = photographs(given.folder, given.images, given.side, folder / "photos")
        columns = f"{'of them':>10}{'processor':>12}"
        print(f"{'':26}{'run':>9}{columns}{'predict':>9}{columns}")
        for row in rows(few, photos, folder):
            print(row, flush=True)


if __name__ == "__main__":
    main()
