"""More clusters than a batch has images: most are absent from every batch."""

import json

import numpy as np
import pytest

from helpers.small import digits, quick_train

# Prototypes of the batch, learnt centres, heads after a pretext.
METHODS = {"propos": {}, "secu": {"overclustering": 2, "train__epochs": 2}, "scan": {"heads": 2, "train__epochs": 3}}


@pytest.mark.parametrize("method", METHODS)
def test_it_survives_more_clusters_than_a_batch_has_images(method):
    settings = {"clusters": 500, "train__batch_size": 128, "estep__restarts": 1, "train__epochs": 2, **METHODS[method]}
    fitted = quick_train(digits(600), method=method, **settings)
    json.dumps(fitted.history, allow_nan=False)
    if method == "propos":
        assert len(np.unique(fitted.table.cluster)) == 500
    assert np.isfinite(fitted.table.confidence).all()
