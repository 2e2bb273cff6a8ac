"""The accuracy that each recipe reached with its defaults on our data sets (docs/results.md)."""

from __future__ import annotations

EXPECTED_ACCURACY = {
    "digits": "accuracy 0.97 on scikit-learn's 1,797 digits of 8×8 (UMAP with k-means: 0.90)",
    "small-grey": "accuracy 0.99 on ten letters in many fonts (UMAP: 0.59), 0.70 to 0.73 on Fashion-MNIST (UMAP: 0.64)",
    "photos": "accuracy 0.37 on 1,500 photographs of imagenette's ten classes (k-means on pixels: 0.25)",
    "pretrained": "accuracy 0.957 on 1,500 photographs of imagenette's ten classes (k-means on its features: 0.90)",
}
