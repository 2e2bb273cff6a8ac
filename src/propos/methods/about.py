"""Where each method is from, and what of ours is known to be as its authors meant it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class About:
    """When and where a method was published, and what was verified, beyond its losses beside independent arithmetic."""

    year: int | None
    reference: str
    verified: str


_PAPER = "settings and readings against the paper and its released code"
_ABLATION = About(2022, "ProPos's ablation (arXiv 2111.11821)", _PAPER)
_BASELINE = "nothing is trained"

ABOUT: Mapping[str, About] = {
    "propos": About(2022, "Huang et al., TPAMI (arXiv 2111.11821)", _PAPER),
    "propos-no-psl": _ABLATION,
    "propos-no-psa": _ABLATION,
    "propos-alignment-only": _ABLATION,
    "propos-uniformity-only": _ABLATION,
    "byol": About(2020, "Grill et al., NeurIPS (arXiv 2006.07733)", "settings against ProPos's released code"),
    "simsiam": About(2021, "Chen and He, CVPR (arXiv 2011.10566)", "settings as ProPos's paper has them"),
    "simclr": About(2020, "Chen et al., ICML (arXiv 2002.05709)", "nothing more"),
    "moco": About(2020, "Chen et al. (arXiv 2003.04297)", "settings as ProPos's paper has them"),
    "pcl": About(2021, "Li et al., ICLR (arXiv 2005.04966)", "settings as ProPos's paper has them"),
    "cc": About(2021, "Li et al., AAAI (arXiv 2009.09687)", "settings against its public code"),
    "cc-psl": About(2022, "ProPos's paper (arXiv 2111.11821)", "the weight is our reading"),
    "byol-cc": About(2022, "ProPos's paper (arXiv 2111.11821)", "the weight is our reading"),
    "byol-pcl": About(2022, "ProPos's paper (arXiv 2111.11821)", "which projections are compared is our reading"),
    "scan": About(2020, "Van Gansbeke et al., ECCV (arXiv 2005.12320)", "terms and settings against its public code"),
    "nnm": About(2021, "Dang et al., CVPR", "terms and settings against its public code"),
    "temi": About(2023, "Adaloglou et al., BMVC (arXiv 2303.17896)", "terms and settings against its public code"),
    "spice": About(
        2022, "Niu et al., TIP (arXiv 2103.09382)", "labels and settings against its public code; see the docs"
    ),
    "dcboost": About(2025, "NeurIPS (arXiv 2511.21193)", "nothing against code, of which none was found; see the docs"),
    "conr": About(2023, "Yu et al., NeurIPS (arXiv 2312.07806)", "terms and settings against its public code"),
    "dec": About(2016, "Xie et al., ICML (arXiv 1511.06335)", "targets and loss against its public code; see the docs"),
    "idec": About(2017, "Guo et al., IJCAI", "losses and their weight against its public code; see the docs"),
    "deepcluster": About(2018, "Caron et al., ECCV (arXiv 1807.05520)", "steps against its public code; see the docs"),
    "dccm": About(
        2019, "Wu et al., ICCV (arXiv 1904.06925)", "losses and settings against its public code; see the docs"
    ),
    "iic": About(2019, "Ji et al., ICCV (arXiv 1807.06653)", "the loss and settings against its public code"),
    "pica": About(2020, "Huang et al., CVPR", "the loss and settings against its public code"),
    "idfd": About(2021, "Tao et al., ICLR (arXiv 2106.00131)", "terms and settings against its public code"),
    "swav": About(2020, "Caron et al., NeurIPS (arXiv 2006.09882)", "the loss and settings against its public code"),
    "gcc": About(2021, "Zhong et al., ICCV (arXiv 2104.01429)", "settings against its public code, not whom it spares"),
    "tcl": About(2022, "Li et al., IJCV", "losses, labels and settings against its public code; see the docs"),
    "secu": About(
        2023, "Qian, ICCV", "terms and settings against its public code, which has no evaluation; see the docs"
    ),
    "localagg": About(2019, "Zhuang et al., ICCV (arXiv 1903.12355)", "terms against its public code; see the docs"),
    "mice": About(2021, "Tsai et al., ICLR", "the loss and settings against its public code; see the docs"),
    "kmeans-features": About(None, "k-means on a pretrained network's features", _BASELINE),
    "kmeans-pixels": About(None, "k-means", _BASELINE),
    "kmeans-random": About(None, "k-means on chance's features", _BASELINE),
}
