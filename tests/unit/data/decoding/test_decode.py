from pathlib import Path

import numpy as np
import PIL
import pytest
from PIL import Image, ImageCms, ImageOps

from helpers.awkward import picture, png_header
from propos.data import scan
from propos.data.decoding.decode import STRIP, decode
from propos.data.files.content import kind_of, open_image, without_warnings
from propos.data.files.entry import DAMAGED, TOO_MANY_BYTES, Entry, Unreadable, reason_for


def entry(path):
    return Entry(path.name, Path(path), path.stat().st_size, 0, kind=kind_of(path.read_bytes()[:64]))


def decoded(path, side=8, channels=3, **options):
    return decode(entry(path), side, channels, **options)[0]


def saved(folder, image, name, **options):
    image.save(folder / name, **options)
    return folder / name


def squashed(image, side):
    return np.asarray(image.resize((side, side), Image.Resampling.BICUBIC)).astype(int)


def flat(colour, mode="RGB", size=(8, 8)):
    return Image.new(mode, size, colour)


@pytest.mark.parametrize("name", ["a.png", "a.webp", "a.bmp", "a.tif", "a.gif"])
def test_lossless_images_of_the_side_come_out_as_they_are(tmp_path, name):
    image = picture(16, 16, 1)
    path = saved(tmp_path, image, name, **({"lossless": True} if name == "a.webp" else {}))
    assert np.array_equal(decoded(path, 16, 1)[..., 0], np.asarray(image))
    assert np.array_equal(decoded(path, 16, 3)[..., 2], np.asarray(image))


def test_images_are_squashed_and_their_true_shape_is_kept(tmp_path):
    image = picture(40, 10)
    pixels, aspect = decode(entry(saved(tmp_path, image, "a.png")), 8, 3)
    assert np.array_equal(pixels, squashed(image, 8))
    assert aspect == 4.0


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp", "a.tif"])
def test_images_stand_upright(tmp_path, turn, name):
    image = picture(32, 16)
    exif = Image.Exif()
    exif[0x0112] = turn
    path = saved(tmp_path, image, name, exif=exif)
    with Image.open(path) as opened:
        upright = ImageOps.exif_transpose(opened).convert("RGB")
    pixels, aspect = decode(entry(path), 8, 3, draft=False)
    assert np.abs(pixels - squashed(upright, 8)).max() <= 1
    assert aspect == upright.width / upright.height == (2.0 if turn < 5 else 0.5)


def test_damaged_exif_leaves_the_image_as_it_is(tmp_path):
    path = saved(tmp_path, picture(8, 8), "a.jpg", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    with without_warnings():
        assert decoded(path).shape == (8, 8, 3)


def test_transparency_shows_white(tmp_path):
    # A fifth of (10, 20, 30) on four fifths of white: (206, 208, 210).
    path = saved(tmp_path, flat((10, 20, 30, 51), "RGBA"), "a.png")
    assert decoded(path)[0, 0].tolist() == [206, 208, 210]
    assert decoded(saved(tmp_path, flat((0, 0), "LA"), "b.png"), channels=1).min() == 255
    assert decoded(saved(tmp_path, flat((100, 255), "LA"), "c.png"), channels=1).max() == 100


@pytest.mark.parametrize("name", ["a.png", "a.gif"])
def test_transparent_colours_of_palettes_show_white(tmp_path, name):
    image = Image.new("P", (8, 8), 1)
    image.putpalette([0, 0, 0, 200, 100, 50])
    image.paste(0, (0, 0, 4, 8))
    pixels = decoded(saved(tmp_path, image, name, transparency=0))
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert pixels[0, 7].tolist() == [200, 100, 50]


def test_palette_and_alpha_channel_together(tmp_path):
    image = Image.new("P", (8, 8), 1)
    image.putpalette([0, 0, 0, 200, 100, 50])
    pixels = decoded(saved(tmp_path, image, "a.png", transparency=bytes([255, 51])))
    assert pixels[0, 0].tolist() == [244, 224, 214]  # 255 − (255 − colour)/5


def test_transparent_grey_and_rgb_values_show_white(tmp_path):
    image = flat(7, "L")
    image.putpixel((7, 7), 9)
    pixels = decoded(saved(tmp_path, image, "a.png", transparency=7), channels=1)
    assert (pixels[0, 0, 0], pixels[7, 7, 0]) == (255, 9)
    pixels = decoded(saved(tmp_path, flat((1, 2, 3)), "b.png", transparency=(1, 2, 3)))
    assert pixels[0, 0].tolist() == [255, 255, 255]


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "RGB"])
@pytest.mark.parametrize("channels", [1, 3])
def test_high_transparent_images_are_laid_on_white_as_low_ones_are(tmp_path, mode, channels):
    """Pillow's own composition of the whole is the measure; the image is worked on in strips."""
    rng = np.random.default_rng(0)
    image = Image.fromarray(rng.integers(256, size=(2 * STRIP + 37, 20, 4), dtype=np.uint8))
    options = {}
    if mode in ("P", "L", "RGB"):
        image = image.convert("RGB").quantize(32) if mode == "P" else image.convert(mode)
        options["transparency"] = {"P": bytes(range(0, 256, 8)), "L": 7, "RGB": (1, 2, 3)}[mode]
    elif mode == "LA":
        image = image.convert("LA")
    path = saved(tmp_path, image, "a.png", **options)
    with Image.open(path) as whole:
        seen = whole.convert("RGBA")
    white = Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen).convert("L" if channels == 1 else "RGB")
    expected = np.asarray(white.resize((16, 16), Image.Resampling.BICUBIC)).reshape(16, 16, channels)
    assert np.array_equal(decoded(path, 16, channels), expected)


def test_what_decoding_would_take_is_bounded(tmp_path):
    # 14,100² pixels are below 200 million; 8 bytes each as RGBA, laid on white, are 1.6 GB.
    for name, colours in (("grey", 0), ("colour", 2), ("palette", 3), ("transparent", 6)):
        (tmp_path / name).write_bytes(png_header(14_100, 14_100, colours))
    skipped = {each.path: each.reason for each in scan(tmp_path).skipped}
    assert skipped == dict.fromkeys(["colour", "palette", "transparent"], TOO_MANY_BYTES)


def test_a_large_progressive_jpeg_is_bounded_and_a_plain_one_is_not(tmp_path):
    for progressive in (False, True):
        path = saved(tmp_path, picture(16, 16), f"{progressive}.jpg", progressive=progressive)
        content = bytearray(path.read_bytes())
        frame = content.index(b"\xff\xc2" if progressive else b"\xff\xc0")
        content[frame + 5 : frame + 9] = (14_000).to_bytes(2, "big") * 2
        path.write_bytes(content)
    skipped = {each.path: each.reason for each in scan(tmp_path).skipped}
    assert skipped == {"True.jpg": TOO_MANY_BYTES}


@pytest.mark.parametrize("name", ["a.png", "a.tif"])
def test_16_bits_span_black_to_white(tmp_path, name):
    values = np.array([[0, 257, 32_896, 65_535]] * 4, dtype=np.uint16)
    pixels = decoded(saved(tmp_path, Image.fromarray(values), name), 4, 1)
    assert pixels[0, :, 0].tolist() == [0, 1, 128, 255]


def test_big_endian_16_bits_are_the_same(tmp_path):
    values = np.array([[0, 257, 32_896, 65_535]] * 4, dtype=">u2")
    image = Image.frombytes("I;16B", (4, 4), values.tobytes())
    assert decoded(saved(tmp_path, image, "a.tif"), 4, 1)[0, :, 0].tolist() == [0, 1, 128, 255]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 100, 200, 255], [0, 100, 200, 255]),
        ([0, 257, 32_896, 65_535], [0, 1, 128, 255]),
        ([-100, 0, 100, 155], [0, 100, 200, 255]),
        ([0, 200_000, 400_000, 1_000_000], [0, 51, 102, 255]),
        ([2_000_000_000, 2_000_000_051, 2_000_000_102, 2_000_000_255], [0, 51, 102, 255]),
    ],
)
def test_32_bits_span_the_range_that_holds_them(tmp_path, values, expected):
    image = Image.fromarray(np.array([values] * 4, dtype=np.int32))
    assert decoded(saved(tmp_path, image, "a.tif"), 4, 1)[0, :, 0].tolist() == expected


def test_floats_span_0_to_1_and_must_be_finite(tmp_path):
    values = np.array([[0.0, 0.2, 0.6, 1.0]] * 4, dtype=np.float32)
    assert decoded(saved(tmp_path, Image.fromarray(values), "a.tif"), 4, 1)[0, :, 0].tolist() == [0, 51, 153, 255]
    values[1, 1] = np.nan
    with pytest.raises(Unreadable, match="NaN"):
        decoded(saved(tmp_path, Image.fromarray(values), "b.tif"), 4, 1)


def test_one_bit_images_are_black_and_white(tmp_path):
    image = flat(0, "1")
    image.paste(1, (4, 0, 8, 8))
    pixels = decoded(saved(tmp_path, image, "a.png"), 8, 1)
    assert (pixels[0, 0, 0], pixels[0, 7, 0]) == (0, 255)


@pytest.mark.parametrize("name", ["a.jpg", "a.tif"])
def test_cmyk_becomes_rgb(tmp_path, name):
    pixels = decoded(saved(tmp_path, flat((255, 0, 0, 0), "CMYK"), name))
    assert np.abs(pixels[4, 4].astype(int) - [0, 255, 255]).max() <= 3


OLD_PILLOW = pytest.mark.skipif(int(PIL.__version__.split(".")[0]) < 13, reason="it cannot read what it wrote itself")


@pytest.mark.parametrize("compression", [pytest.param("raw", marks=OLD_PILLOW), "tiff_lzw", "jpeg"])
def test_ycbcr_becomes_rgb(tmp_path, compression):
    red = flat((76, 85, 255), "YCbCr")  # by the JFIF equations
    pixels = decoded(saved(tmp_path, red, "a.tif", compression=compression))
    assert np.abs(pixels[0, 0].astype(int) - [254, 0, 0]).max() <= 1


def test_lab_becomes_rgb(tmp_path):
    assert ImageCms.core is not None
    pixels = decoded(saved(tmp_path, flat((255, 128, 128), "LAB"), "white.tif"))
    assert pixels.min() >= 253
    red = decoded(saved(tmp_path, flat((136, 208, 195), "LAB"), "red.tif"))[0, 0]  # L 53.3, a 80, b 67: sRGB's red
    assert np.abs(red.astype(int) - [255, 0, 0]).max() <= 12


def test_colour_becomes_grey_for_one_channel(tmp_path):
    pixels = decoded(saved(tmp_path, flat((255, 0, 0)), "a.png"), channels=1)
    assert pixels.shape == (8, 8, 1)
    assert pixels[0, 0, 0] == 76  # 0.299 of red


def test_of_a_moving_picture_the_first_frame_counts(tmp_path):
    first, second = picture(8, 8, 1, seed=1), picture(8, 8, 1, seed=2)
    path = saved(tmp_path, first, "a.gif", save_all=True, append_images=[second])
    assert np.array_equal(decoded(path, 8, 1)[..., 0], np.asarray(first))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(400, 300), (403, 299), (2_000, 40)])
def test_draft_decoding_differs_by_little(tmp_path, channels, size):
    image = picture(*size).resize(size, Image.Resampling.BOX)
    path = saved(tmp_path, image, "a.jpg", quality=90)
    (drafted, aspect), (whole, _) = (decode(entry(path), 32, channels, draft=draft) for draft in (True, False))
    assert np.abs(drafted.astype(int) - whole).mean() < 2
    assert aspect == size[0] / size[1]


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("size", [(53, 40), (40, 53), (300, 171), (171, 300), (41, 41)])
def test_the_middle_alone_is_the_middle_of_the_whole(tmp_path, size, turn):
    exif = Image.Exif()
    exif[0x0112] = turn
    path = saved(tmp_path, picture(*size), "a.jpg", quality=90, exif=exif.tobytes())
    (whole, aspect), (middle, same) = (decode(entry(path), 32, 3, shaped=True, middle=side) for side in (0, 28))
    top, left = ((edge - 28) / 2 for edge in whole.shape[:2])
    cut = whole[round(top) : round(top) + 28, round(left) : round(left) + 28]
    upright = cut.transpose(1, 0, 2) if aspect < 1 else cut
    assert middle.shape == (28, 28, 3)
    assert np.abs(middle.astype(int) - upright).max() <= 1
    assert (middle != upright).mean() < 0.001
    assert same == aspect


def test_of_an_image_smaller_than_announced_the_whole_is_returned(tmp_path):
    path = saved(tmp_path, picture(40, 20), "a.png")
    assert decode(entry(path), 32, 3, shaped=True, middle=28)[0].shape == (20, 40, 3)


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.bmp", "a.tif", "a.webp", "a.gif"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_files_cut_short_are_errors_and_not_grey_stripes(tmp_path, name, share):
    path = saved(tmp_path, picture(64, 64), name)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with without_warnings(), pytest.raises(Exception) as error:
        decoded(path)
    assert reason_for(error.value) == DAMAGED


def test_a_file_that_vanished_says_so(tmp_path):
    gone = Entry("a.png", tmp_path / "a.png", 1, 0, kind="PNG")
    with pytest.raises(FileNotFoundError) as error, open_image(gone):
        pass
    assert reason_for(error.value) == "no such file or directory"


@pytest.mark.parametrize("turn", [1, 6])
def test_heic_images_are_read_with_the_extra(tmp_path, turn):
    heif = pytest.importorskip("pillow_heif")
    image = picture(64, 32)
    exif = Image.Exif()
    exif[0x0112] = turn
    heif.from_pillow(image).save(tmp_path / "a.jpg", quality=95, exif=exif.tobytes())
    upright = image if turn == 1 else image.transpose(Image.Transpose.ROTATE_270)
    pixels, aspect = decode(entry(tmp_path / "a.jpg"), 8, 3)
    assert np.abs(pixels - squashed(upright, 8)).mean() < 4
    assert aspect == upright.width / upright.height
