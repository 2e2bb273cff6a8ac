"""Small files in the official layouts of published data sets."""

import gzip
import pickle
import struct
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

RNG_SEED = 7


def pixels(count, *shape):
    return np.random.default_rng(RNG_SEED).integers(256, size=(count, *shape), dtype=np.uint8)


def cifar_10(root, per_batch=12):
    """Six batch files as Python 2 wrote them; the classes take turns. Returns the rows in reading order."""
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    rows = pixels(6 * per_batch, 3072)
    labels = [number % 10 for number in range(6 * per_batch)]
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    for number, name in enumerate(names):
        part = slice(number * per_batch, (number + 1) * per_batch)
        (folder / name).write_bytes(python_2_pickle(rows[part], {b"labels": labels[part]}))
    return rows, labels


def cifar_100(root, count=40):
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    rows = pixels(2 * count, 3072)
    coarse = [number % 20 for number in range(2 * count)]
    for number, name in enumerate(("train", "test")):
        part = slice(number * count, (number + 1) * count)
        keys = {b"fine_labels": [99] * count, b"coarse_labels": coarse[part]}
        (folder / name).write_bytes(python_2_pickle(rows[part], keys))
    return rows, coarse


def python_2_pickle(rows, lists):
    """Write a batch, opcode by opcode, as Python 2 and its numpy did: protocol 2, byte strings, numpy.core names."""
    parts = [b"\x80\x02}("]
    for key, values in lists.items():
        parts += [_string(key), b"](", *(b"K" + bytes([value]) for value in values), b"e"]
    shape = b"".join(b"J" + struct.pack("<i", size) for size in rows.shape) + b"\x86"
    kind = b"cnumpy\ndtype\n" + _string(b"u1") + b"K\x00K\x01\x87R"
    kind += b"(K\x03" + _string(b"|") + b"NNN" + 2 * (b"J" + struct.pack("<i", -1)) + b"K\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + _string(b"b") + b"\x87R"
    parts += [_string(b"data"), array, b"(K\x01", shape, kind, b"\x89", _string(rows.tobytes()), b"tb"]
    return b"".join([*parts, _string(b"batch_label"), _string(b"made by a test"), b"u."])


def _string(content):
    if len(content) < 256:
        return b"U" + bytes([len(content)]) + content
    return b"T" + struct.pack("<i", len(content)) + content


def python_3_pickle(rows, lists, protocol):
    return pickle.dumps({b"data": rows, **lists}, protocol=protocol)


def stl_10(root, train=6, test=4, unlabelled=5):
    folder = root / "stl10_binary"
    folder.mkdir(parents=True)
    images = {}
    for name, count in (("train", train), ("test", test), ("unlabeled", unlabelled)):
        images[name] = np.random.default_rng(count).integers(256, size=(count, 96, 96, 3), dtype=np.uint8)
        images[name].transpose(0, 3, 2, 1).tofile(folder / f"{name}_X.bin")
        if name != "unlabeled":
            np.array([1 + number % 10 for number in range(count)], dtype=np.uint8).tofile(folder / f"{name}_y.bin")
    return images


def idx(path, array):
    """Write an idx file, gzipped if it is called so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    opened = gzip.open if path.suffix == ".gz" else Path.open
    with opened(path, "wb") as file:
        file.write(head + array.tobytes())


def mnist(folder, ending="", train=5, test=3):
    images, labels = pixels(train + test, 28, 28), np.arange(train + test, dtype=np.uint8)
    for name, part in (("train", slice(0, train)), ("t10k", slice(train, None))):
        idx(folder / f"{name}-images-idx3-ubyte{ending}", images[part])
        idx(folder / f"{name}-labels-idx1-ubyte{ending}", labels[part])
    return images, labels


def photograph(path, seed=0, width=70, height=66):
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(seed).integers(256, size=(height, width, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path, "JPEG")


def imagenet(folder, classes, train=2, val=1):
    """Class folders of photographs; the validation images are in class folders too."""
    for number, label in enumerate(classes):
        for image in range(train):
            photograph(folder / "train" / label / f"{label}_{image}.JPEG", 10 * number + image)
        for image in range(val):
            photograph(folder / "val" / label / f"ILSVRC2012_val_{val * number + image + 1:08d}.JPEG", 1000 + number)


def devkit(folder, classes, truth):
    """The development kit's two files: the classes by number, and the number of each validation image."""
    data = folder / "ILSVRC2012_devkit_t12" / "data"
    data.mkdir(parents=True)
    synsets = np.zeros(len(classes), dtype=[("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O")])
    for number, label in enumerate(classes):
        synsets[number] = (float(number + 1), label, f"the words of {label}")
    savemat(data / "meta.mat", {"synsets": synsets.reshape(-1, 1)})
    (data / "ILSVRC2012_validation_ground_truth.txt").write_text("".join(f"{number}\n" for number in truth))


def tiny(folder, classes, train=2):
    for number, label in enumerate(classes):
        for image in range(train):
            photograph(folder / "train" / label / "images" / f"{label}_{image}.JPEG", 10 * number + image, 64, 64)
        (folder / "train" / label / f"{label}_boxes.txt").write_text(f"{label}_0.JPEG\t0\t0\t62\t62\n")
    lines = []
    for number, label in enumerate(reversed(classes)):
        photograph(folder / "val" / "images" / f"val_{number}.JPEG", 500 + number, 64, 64)
        lines.append(f"val_{number}.JPEG\t{label}\t0\t32\t44\t62\n")
    (folder / "val" / "val_annotations.txt").write_text("".join(lines))
