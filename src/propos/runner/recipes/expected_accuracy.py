"""The accuracy to expect of each recipe with its defaults, as measured in docs/results.md."""

from __future__ import annotations

EXPECTED_ACCURACY = {
    "digits": "accuracy 0.97 on digits of 8×8, where UMAP with k-means has 0.90",
    "small-grey": "accuracy 0.99 on letters in many fonts, 0.70 to 0.73 on pictures of clothes (UMAP: 0.59 and 0.64)",
    "photos": "accuracy 0.30 on 1,200 photographs of ten kinds, where k-means on pixels has 0.25",
    "pretrained": "accuracy 0.957 on 1,500 photographs of ten kinds, where k-means on the same features has 0.90",
}
