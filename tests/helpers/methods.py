"""Which methods the tests go through: all of them, of which `make test` takes those that together use everything."""

import pytest

from propos.methods import find_method, method_names

# A target and clusters, a queue, a bank, prototypes, a pretext and heads, learnt centres, a decoder, a discriminator.
REPRESENTATIVE = ("propos", "moco", "idfd", "swav", "scan", "secu", "dec", "dccm")
OF_IMAGES = [name for name in method_names() if "images" in find_method(name).inputs]
TRAINED = [name for name in OF_IMAGES if find_method(name).trains]


def each(names, *more, quick=REPRESENTATIVE):
    """Return parameters for a test of each method that exists; `make test` takes the quick ones."""
    return [
        pytest.param(name, *more, id=name, marks=[] if name in quick else pytest.mark.full)
        for name in names
        if name in method_names()
    ]
