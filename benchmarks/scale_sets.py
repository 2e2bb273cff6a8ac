"""Made-up sets for `scale.py`: folders of small photographs, vectors, and finished runs of either."""

import io
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from propos.config import Config, PixelSettings
from propos.data import cache_side, find_configured, fingerprint
from propos.runner.recipes.pretrained import pretrained
from propos.runs import ImageTable, Run, RunFolder
from propos.training.model import predict_from_embeddings

DIMENSION, KINDS = 128, 200  # of the embeddings of photographs, and of the kinds that they are drawn from
CLUSTERS = 100
BLOCK = 65_536
WIDTH, HEIGHT = 64, 48
PICTURES = 100_000  # that differ in pixels; others differ in the time alone
COPIES = 100  # one file in so many is a copy of the one before it
EXIF_TIME = 0x9003
SOON = b"2000:01:01 00:00:00"  # replaced by a time of its own in every file


def photographs(folder: Path, images: int) -> Path:
    """Write small photographs with camera and time, unless they are there; one in a hundred is a copy."""
    photos = folder / "photos"
    if photos.exists():
        return photos
    draw, part = np.random.default_rng(0), folder / "photos.part"
    exif = Image.Exif()
    exif[0x010F], exif[0x0110] = "Maker", "Model"
    exif.get_ifd(0x8769)[EXIF_TIME] = SOON.decode()
    content, pictures = b"", [_picture(draw, exif) for _ in range(min(images, PICTURES))]
    for number in range(images):
        place = part / name(number)
        if number % 1000 == 0:
            place.parent.mkdir(parents=True)
        if (number + 1) % COPIES:
            content = pictures[number % len(pictures)].replace(SOON, _time(number))
        place.write_bytes(content)
    part.rename(photos)
    return photos


def _picture(draw: np.random.Generator, exif: Image.Exif) -> bytes:
    coarse = draw.integers(0, 256, (6, 8, 3), dtype=np.uint8)
    file = io.BytesIO()
    image = Image.fromarray(coarse).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
    image.save(file, "JPEG", quality=80, exif=exif.tobytes())
    return file.getvalue()


def _time(number: int) -> bytes:
    """Return the time at which a photograph was taken, as EXIF writes it: one every seven seconds."""
    minutes, second = divmod(7 * number, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    day = f"{2000 + days // 336:04d}:{days // 28 % 12 + 1:02d}:{days % 28 + 1:02d}"
    return f"{day} {hour:02d}:{minute:02d}:{second:02d}".encode()


def name(number: int) -> str:
    """Return the name of an image, in folders of a thousand."""
    return f"{number // 20_000:04d}-{number // 1000 % 20:02d}/IMG_{number:08d}.jpg"


def names(start: int, stop: int) -> list[str]:
    """Return the names of some images."""
    return [name(number) for number in range(start, stop)]


def unit_vectors(images: int, dimension: int = DIMENSION) -> torch.Tensor:
    """Draw unit vectors around the centres of some kinds, a block at a time."""
    draw = torch.Generator().manual_seed(0)
    centres = torch.randn(KINDS, dimension, generator=draw)
    table = torch.empty(images, dimension)
    for rows in table.split(BLOCK):
        own = torch.randint(KINDS, (len(rows),), generator=draw)
        rows.copy_(F.normalize(centres[own] + torch.randn(len(rows), dimension, generator=draw), dim=1))
    return table


def finished_run(folder: Path, images: int, decodes: bool = True) -> Run:
    """Write a run of the photographs, unless it is there; where nothing decodes, of an array that was in memory."""
    path = folder / "run"
    if path.exists():
        return Run.open(path)
    settings = pretrained().model_dump() | {"clusters": CLUSTERS}
    config = Config.model_validate(settings | {"source": str(photographs(folder, images)) if decodes else None})
    config = config.model_copy(update={"pixels": PixelSettings(mean=(0.5,) * 3, std=(0.25,) * 3)})
    known_by = None
    if decodes:
        known_by = fingerprint(find_configured(config).open(cache_side(config.views), keep="use", shaped=True))
    info = {"status": "finished", "source": {"name": "photographs", "fingerprint": known_by}}
    points = unit_vectors(images)
    prototypes = points[torch.linspace(0, images - 1, CLUSTERS).long()].clone()
    found = predict_from_embeddings(points, prototypes, torch.full((images,), -1))
    run = RunFolder.create(folder / "run.part", info, config)
    run.write_images(ImageTable(names(0, images), found.cluster, found.confidence, found.distance))
    run.write_array("embeddings.npy", points.numpy())
    run.write_array("prototypes.npy", prototypes.numpy())
    places = np.random.default_rng(0).random((images, 2), np.float32)  # the layout is a part of its own
    run.write_array("map.npy", places)
    (folder / "run.part").rename(path)
    return Run.open(path)
