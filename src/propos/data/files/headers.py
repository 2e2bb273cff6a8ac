"""Format, size and colour of images, from their headers alone."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from PIL import ExifTags, ImageFile

from propos.common.progress import ShowTask, show_nothing
from propos.data.files.content import open_image, without_warnings
from propos.data.files.entry import Entry, Scan
from propos.data.files.scan import read_entries, refuse_if_empty

GREY_MODES = ("1", "L", "LA", "La", "F")
SMALL = 64  # images of one size up to this are used as they are


@dataclass(frozen=True)
class Header:
    """The header of an image."""

    entry: Entry
    width: int  # as seen, after the camera's rotation
    height: int
    mode: str  # Pillow's name of its pixels
    grey: bool


@dataclass(frozen=True)
class Headers:
    """The headers of the images that have readable ones, and the scan without the others."""

    scan: Scan
    headers: list[Header]

    @property
    def channels(self) -> int:
        """1 when every image is greyscale, else 3."""
        return 1 if all(header.grey for header in self.headers) else 3

    @property
    def common_size(self) -> tuple[int, int] | None:
        """The width and height all images share, if they do."""
        sizes = {(header.width, header.height) for header in self.headers}
        return sizes.pop() if len(sizes) == 1 else None

    @property
    def median_size(self) -> tuple[float, float]:
        """The median width and the median height."""
        widths, heights = zip(*((header.width, header.height) for header in self.headers), strict=True)
        return statistics.median(widths), statistics.median(heights)

    @property
    def small_side(self) -> int | None:
        """The side at which small images of one size are kept as they are (the longer one, if they are not square)."""
        size = self.common_size
        return max(size) if size is not None and max(size) <= SMALL else None


def read_headers(scanned: Scan, show_task: ShowTask = show_nothing) -> Headers:
    """Read every image's header, and move those that have no sound one to the skipped files."""
    with show_task("Reading the images' headers") as progress, without_warnings():
        headers, skipped = read_entries(scanned.images, _read, progress)
    rest = Scan(scanned.root, [header.entry for header in headers], [*scanned.skipped, *skipped], scanned.notes)
    refuse_if_empty(rest)
    return Headers(rest, headers)


def orientation(image: ImageFile.ImageFile) -> int:
    """Return how the camera was held, 1 to 8 as EXIF counts; 1, upright, when the note is missing or damaged."""
    try:
        value = image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:  # EXIF is full of nonsense; the pixels are still good
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _read(entry: Entry) -> Header:
    with open_image(entry) as image:
        width, height = image.size
        # A PNG without EXIF in its header would be decoded to look for it; TIFF applies the orientation itself.
        turned = entry.kind != "TIFF" and (entry.kind != "PNG" or "exif" in image.info) and orientation(image) >= 5
        if turned:
            width, height = height, width
        return Header(entry, width, height, image.mode, _is_grey(image))


def _is_grey(image: ImageFile.ImageFile) -> bool:
    if image.mode in ("P", "PA") and image.palette is not None:
        colours = bytes(image.palette.palette)
        step = len(image.palette.mode)
        return image.palette.rawmode in (None, "RGB") and colours[0::step] == colours[1::step] == colours[2::step]
    return image.mode in GREY_MODES or image.mode.startswith("I")
