"""A folder of 300 files made awkward on purpose, with the exact list of what must be skipped and why."""

import os
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from propos.data.files.content import NEEDS_HEIC, NOT_AN_IMAGE, reads_heic
from propos.data.files.entry import DAMAGED, EMPTY, TOO_MANY_PIXELS
from propos.data.files.listing import BROKEN_LINK, NOT_A_FILE
from propos.data.files.names import escape_name

FILES = 300


@dataclass
class Awkward:
    root: Path
    images: dict[str, tuple[int, int]] = field(default_factory=dict)  # escaped name: width, height as seen
    skipped: dict[str, str] = field(default_factory=dict)  # escaped name: reason
    ignored: int = 0  # files that must not be mentioned at all

    def __len__(self):
        return len(self.images) + len(self.skipped) + self.ignored


def picture(width, height, channels=3, seed=0):
    """A smooth picture with noise, so that every format has something to compress."""
    rng = np.random.default_rng([seed, width, height])
    slope = np.linspace(0, 200, height)[:, None, None] + np.linspace(0, 40, width)[None, :, None]
    pixels = np.broadcast_to(slope, (height, width, channels)) + rng.integers(16, size=(height, width, channels))
    return Image.fromarray((pixels[..., 0] if channels == 1 else pixels).astype(np.uint8))


def png_header(width, height, colours=2):
    """A PNG that says it is very large, and ends there."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, colours, 0, 0, 0)
    data = b"IDAT" + zlib.compress(b"\0")
    chunks = [struct.pack(">I", len(c) - 4) + c + struct.pack(">I", zlib.crc32(c)) for c in (head, data, b"IEND")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def awkward_folder(root):
    made = Awkward(root)
    root.mkdir(parents=True)
    _formats(made)
    _modes(made)
    _names(made)
    _faults(made)
    _links(made)
    _ignored(made)
    for number in range(FILES - len(made)):
        kind = ("jpg", "png", "webp", "bmp", "tiff", "gif")[number % 6]
        _save(made, f"class {number % 3}/deep/{number:03d}.{kind}", picture(20 + number % 7, 24, seed=number))
    assert len(made) == FILES
    return made


def _save(made, name, image, seen=None, **options):
    path = made.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w+b") as file:
        image.save(file, options.pop("format", None) or Image.registered_extensions()[Path(name).suffix], **options)
    made.images[escape_name(name)] = seen or image.size
    return path


def _bytes(made, name, content, reason):
    path = made.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    made.skipped[escape_name(name)] = reason


def _formats(made):
    image = picture(40, 30)
    for ending in ("jpg", "jpeg", "png", "webp", "bmp", "tif", "gif"):
        _save(made, f"formats/plain.{ending}", image)
    _save(made, "formats/progressive.jpg", image, progressive=True)
    _save(made, "formats/moving.gif", image, save_all=True, append_images=[picture(40, 30, seed=1)])
    _save(made, "formats/pages.tif", image, save_all=True, append_images=[picture(10, 10)])
    _save(made, "formats/packed.tif", image, compression="tiff_lzw")
    _save(made, "formats/png called.jpg", image, format="PNG")
    _save(made, "formats/no ending", image, format="JPEG")
    _save(made, "formats/called.txt", image, format="WEBP")
    _save(made, "formats/CAPITALS.JPG", image, format="JPEG")


def _modes(made):
    exif = Image.Exif()
    for turn in range(1, 9):
        exif[0x0112] = turn
        _save(made, f"modes/turned {turn}.jpg", picture(40, 30), (40, 30) if turn < 5 else (30, 40), exif=exif)
    _save(made, "modes/odd exif.jpg", picture(40, 30), exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    image = picture(24, 24)
    _save(made, "modes/palette.png", image.quantize(16))
    _save(made, "modes/one bit.png", image.convert("1"))
    _save(made, "modes/grey.png", image.convert("L"))
    _save(made, "modes/grey alpha.png", image.convert("LA"))
    _save(made, "modes/alpha.png", image.convert("RGBA"))
    _save(made, "modes/alpha.webp", image.convert("RGBA"))
    _save(made, "modes/clear palette.gif", image.quantize(16), transparency=3)
    _save(made, "modes/16 bit.png", Image.fromarray(np.arange(576, dtype=np.uint16).reshape(24, 24) * 100))
    _save(made, "modes/32 bit.tif", Image.fromarray(np.arange(576, dtype=np.int32).reshape(24, 24) * 1000))
    _save(made, "modes/float.tif", Image.fromarray(np.linspace(0, 1, 576, dtype=np.float32).reshape(24, 24)))
    _save(made, "modes/cmyk.jpg", image.convert("CMYK"))
    _save(made, "modes/cmyk.tif", image.convert("CMYK"))
    _save(made, "modes/ycbcr.tif", image.convert("YCbCr"), compression="tiff_lzw")
    _save(made, "modes/lab.tif", Image.merge("LAB", image.split()))


def _names(made):
    image = picture(12, 12)
    for name in ("two words .png", "ünïcødé 图片.png", "line\nbreak.png", "back\\slash.png", "100%.png", "#5.png"):
        _save(made, f"names/{name}", image, format="PNG")
    _save(made, f"names/{'n' * 251}.png", image)
    _save(made, os.fsdecode(b"names/caf\xe9 \xff.png"), image, format="PNG")


def _faults(made):
    _bytes(made, "faults/empty.jpg", b"", EMPTY)
    _bytes(made, "faults/notes.txt", b"BMW and other words", NOT_AN_IMAGE)
    _bytes(made, "faults/page.jpg", b"<html>404 not found</html>", NOT_AN_IMAGE)
    _bytes(made, "faults/drawing.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>", NOT_AN_IMAGE)
    _bytes(made, "faults/clip.mp4", b"\0\0\0\x18ftypisom" + bytes(200), NOT_AN_IMAGE)
    _bytes(made, "faults/head.jpg", b"\xff\xd8\xff\xe0", DAMAGED)
    _bytes(made, "faults/bomb.png", png_header(50_000, 40_000), TOO_MANY_PIXELS)
    _bytes(made, "faults/lying.png", png_header(30, 30), DAMAGED)
    _bytes(made, "faults/phone.heic", b"\0\0\0\x18ftypheic" + bytes(200), DAMAGED if reads_heic() else NEEDS_HEIC)
    for ending in ("jpg", "png", "webp", "bmp", "tif", "gif"):
        whole = (made.root / f"formats/plain.{ending}").read_bytes()
        _bytes(made, f"faults/half.{ending}", whole[: len(whole) // 2], DAMAGED)
    broken = bytearray((made.root / "formats/plain.png").read_bytes())
    broken[80:120] = bytes(40)
    _bytes(made, "faults/broken.png", bytes(broken), DAMAGED)
    os.mkfifo(made.root / "faults/pipe.png")
    made.skipped["faults/pipe.png"] = NOT_A_FILE


def _links(made):
    outside = made.root.with_name(made.root.name + "-elsewhere")
    outside.mkdir()
    picture(16, 16).save(outside / "linked.png")
    links = made.root / "links"
    links.mkdir()
    (links / "folder").symlink_to(outside)
    made.images["links/folder/linked.png"] = (16, 16)
    (links / "gone.png").symlink_to(outside / "nothing.png")
    made.skipped["links/gone.png"] = BROKEN_LINK
    (links / "self.png").symlink_to("self.png")
    made.skipped["links/self.png"] = BROKEN_LINK
    (links / "loop").symlink_to(made.root)
    (outside / "back").symlink_to(links)
    (links / "second").symlink_to(outside)
    (links / "same.png").symlink_to(made.root / "formats/plain.png")
    made.ignored += 4


def _ignored(made):
    content = (made.root / "formats/plain.jpg").read_bytes()
    for name in (".DS_Store", "Thumbs.db", "desktop.ini", "._plain.jpg", ".hidden.jpg", "__MACOSX/x.jpg", ".git/y.jpg"):
        path = made.root / "formats" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        made.ignored += 1
