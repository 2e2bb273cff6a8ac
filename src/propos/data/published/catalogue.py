"""The published data sets known by name."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from propos.common import names
from propos.common.errors import InputError
from propos.data.cache.images import Layout, Progress
from propos.data.cache.index import indexed_scan
from propos.data.files.listing import Listing
from propos.data.folder import open_cached_or_streamed
from propos.data.published import classes
from propos.data.published.benchmark import Benchmark, Download, Find, Splits
from propos.data.published.cifar import CIFAR_10, CIFAR_100, find_cifar
from propos.data.published.idx import find_idx
from propos.data.published.imagenet import TYPICAL, list_imagenet, subset
from propos.data.published.layout import refuse_if_empty
from propos.data.published.stl import UNLABELLED, find_stl
from propos.data.published.tiny_imagenet import SIDE as TINY_SIDE
from propos.data.published.tiny_imagenet import list_tiny
from propos.data.source import Source, Statistics
from propos.data.unopened import CachePolicy, UnopenedSource

IMAGENET_PIXELS: Statistics = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CIFAR_10_PIXELS: Statistics = ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
CIFAR_20_PIXELS: Statistics = ((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761))
TRAIN_AND_TEST = ("train+test", "train", "test")
TRAIN_OR_VAL = ("train", "val", "train+val")


def named(name: str) -> tuple[Benchmark, str | None] | None:
    """Return the set and the split that `name` or `name:split` means, if it means one."""
    base, colon, split = name.partition(":")
    benchmark = CATALOGUE.get(base)
    return None if benchmark is None else (benchmark, split if colon else None)


def nearest(name: str) -> str | None:
    """Return the name a misspelt one may have meant."""
    return names.nearest(name, CATALOGUE)


def benchmark(name: str) -> Benchmark:
    """Return the set of this name; raise InputError with the known names if there is none."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    near = nearest(name)
    hint = f"did you mean {near}?" if near in CATALOGUE else f"choose from {', '.join(CATALOGUE)}"
    raise InputError(f"{name}: no such data set: {hint}")


def _cifar_10(name: str, folder: Path, splits: Splits, tail: bool = False) -> UnopenedSource:
    files = tuple(file for split in splits for file in CIFAR_10[split])
    return find_cifar(name, folder, files, "labels", classes.CIFAR_10, tail)


def _cifar_20(name: str, folder: Path, splits: Splits, tail: bool = False) -> UnopenedSource:
    files = tuple(file for split in splits for file in CIFAR_100[split])
    return find_cifar(name, folder, files, "coarse_labels", classes.CIFAR_20, tail)


def _photographs(name: str, listing: Listing, height: int, width: int, streamed: bool = False) -> UnopenedSource:
    """Describe a set of files without opening any of them."""
    refuse_if_empty(name, listing)

    def open_images(
        side: int,
        channels: int | None = None,
        progress: Progress | None = None,
        keep: CachePolicy = "build",
        shaped: bool = False,
    ) -> Source:
        how: CachePolicy = "stream" if streamed else keep
        return open_cached_or_streamed(
            listing, indexed_scan(listing), Layout(side, channels or 3, shaped), progress, how
        )

    return UnopenedSource(len(listing.rows), 3, height, width, open_images, labelled=True)


def _tiny(name: str, folder: Path, splits: Splits) -> UnopenedSource:
    return _photographs(name, list_tiny(name, folder, splits), TINY_SIDE, TINY_SIDE)


def _imagenet(name: str, folder: Path, splits: Splits, chosen: str | None) -> UnopenedSource:
    listing = list_imagenet(name, folder, splits, None if chosen is None else subset(chosen))
    return _photographs(name, listing, *TYPICAL, streamed=chosen is None)


def _of_imagenet(name: str, images: int, n_classes: int, chosen: str | None) -> Benchmark:
    return Benchmark(
        name=name,
        images=images,
        classes=n_classes,
        size="photographs",
        splits=TRAIN_OR_VAL,
        folders=("ILSVRC2012", "imagenet", "ImageNet", "ILSVRC/Data/CLS-LOC"),
        home="https://image-net.org (ILSVRC 2012, after registering)",
        find=partial(_imagenet, chosen=chosen),
        statistics=IMAGENET_PIXELS,
    )


def _of_cifar_10(name: str, images: int, splits: tuple[str, ...], find: Find) -> Benchmark:
    return Benchmark(
        name=name,
        images=images,
        classes=10,
        size="32×32",
        splits=splits,
        folders=("cifar-10-batches-py",),
        home="https://www.cs.toronto.edu/~kriz/cifar.html (python version)",
        find=find,
        statistics=CIFAR_10_PIXELS,
        downloads=(
            Download("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a"),
        ),
    )


def _of_cifar_100(name: str, images: int, splits: tuple[str, ...], find: Find) -> Benchmark:
    return Benchmark(
        name=name,
        images=images,
        classes=20,
        size="32×32",
        splits=splits,
        folders=("cifar-100-python",),
        home="https://www.cs.toronto.edu/~kriz/cifar.html (CIFAR-100, python version)",
        find=find,
        statistics=CIFAR_20_PIXELS,
        downloads=(
            Download("https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85"),
        ),
    )


def _of_idx(
    name: str, folders: tuple[str, ...], home: str, class_names: tuple[str, ...], base: str, md5: tuple[str, ...]
) -> Benchmark:
    files = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    return Benchmark(
        name=name,
        images=70_000,
        classes=10,
        size="28×28 grey",
        splits=TRAIN_AND_TEST,
        folders=folders,
        home=home,
        find=partial(find_idx, classes=class_names),
        downloads=tuple(Download(f"{base}/{file}", sum_) for file, sum_ in zip(files, md5, strict=True)),
    )


_SETS = (
    _of_cifar_10("cifar-10", 60_000, TRAIN_AND_TEST, _cifar_10),
    _of_cifar_100("cifar-20", 60_000, TRAIN_AND_TEST, _cifar_20),
    Benchmark(
        name="stl-10",
        images=13_000,
        classes=10,
        size="96×96",
        splits=(*TRAIN_AND_TEST, UNLABELLED),
        folders=("stl10_binary",),
        home="https://cs.stanford.edu/~acoates/stl10/ (binary files)",
        find=partial(find_stl, classes=classes.STL_10),
        statistics=IMAGENET_PIXELS,
        downloads=(
            Download("http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz", "91f7769df0f17e558f3565bffb0c7dfb"),
        ),
    ),
    _of_imagenet("imagenet-10", 13_000, 10, "imagenet-10"),
    _of_imagenet("imagenet-dogs", 19_500, 15, "imagenet-dogs"),
    Benchmark(
        name="tiny-imagenet",
        images=100_000,
        classes=200,
        size="64×64",
        splits=TRAIN_OR_VAL,
        folders=("tiny-imagenet-200",),
        home="http://cs231n.stanford.edu/tiny-imagenet-200.zip",
        find=_tiny,
        statistics=IMAGENET_PIXELS,
        downloads=(Download("http://cs231n.stanford.edu/tiny-imagenet-200.zip", "90528d7ca1a48142e341f4ef8d21d0de"),),
    ),
    _of_imagenet("imagenet-1k", 1_281_167, 1_000, None),
    _of_imagenet("imagenet-50", 64_274, 50, "imagenet-50"),
    _of_imagenet("imagenet-100", 128_545, 100, "imagenet-100"),
    _of_imagenet("imagenet-200", 256_558, 200, "imagenet-200"),
    _of_cifar_10("cifar-10-lt", 20_431, ("train",), partial(_cifar_10, tail=True)),
    _of_cifar_100("cifar-20-lt", 19_954, ("train",), partial(_cifar_20, tail=True)),
    _of_idx(
        "fashion-mnist",
        ("fashion-mnist", "FashionMNIST/raw"),
        "https://github.com/zalandoresearch/fashion-mnist",
        classes.FASHION,
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        (
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79",
            "bb300cfdad3c16e7a12a480ee83cd310",
        ),
    ),
    _of_idx(
        "mnist",
        ("mnist", "MNIST/raw"),
        "http://yann.lecun.com/exdb/mnist/",
        classes.DIGITS,
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        (
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
    ),
)
CATALOGUE = {each.name: each for each in _SETS}
