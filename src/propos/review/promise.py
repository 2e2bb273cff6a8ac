"""The promise that exports carry: how many labels are right, and the probability that each of them is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from propos.evaluation.calibration import FEWEST, calibrate
from propos.evaluation.restarts import disagreement, restart_clusters
from propos.review.quality import Quality, measure_quality
from propos.runs import CONFIDENCE_TEMPERATURE, JUNK, Run
from propos.runs.audit import RIGHT, UNANSWERED, Audit, read_audit
from propos.runs.clusters import rows_of
from propos.runs.corrections import AUDITED, MOVED, WRONG


@dataclass(frozen=True)
class Promise:
    """The share of right labels (None before the first answer), and whether there are probabilities of each."""

    quality: Quality | None
    calibrated: bool

    def __str__(self) -> str:
        """Return it as a sentence."""
        if self.quality is None:
            return "not audited, and confidence is not calibrated"
        share = self.quality.share
        known = f"{share} are right ({share.stated})"
        return known if self.calibrated else f"{known}; confidence is not calibrated before {FEWEST}"


def promise_of(run: Run) -> Promise:
    """Return what the audit of a run promises of its labels."""
    audit = _audit(run)
    if audit is None:
        return Promise(None, calibrated=False)
    return Promise(measure_quality(run, audit), int((audit.answers(run) != UNANSWERED).sum()) >= FEWEST)


def probabilities(run: Run) -> Float[np.ndarray, " N"] | None:
    """Return the probability that each label is right; None if an audit has too few answers. Junk has 0.

    Labels that a person checked for the audit, or gave, are certain; those that a person called wrong are 0.
    """
    audit = _audit(run)
    if audit is None:
        return None
    corrected, answers, whole = run.corrected, audit.answers(run), audit.whole(run)
    known = answers != UNANSWERED
    rows = audit.rows[known]
    if len(rows) < FEWEST:
        return None
    now = corrected.table.cluster.astype(np.int64)
    restarts = restart_clusters(run.embedding_rows, now, run.config.seed)
    apart = disagreement(restarts[:, rows], whole[rows])
    fitted = calibrate(_confidence(run, rows, whole[rows]), whole[rows], apart, answers[known] == RIGHT)
    probability = fitted.probability(corrected.table.confidence, now, disagreement(restarts, now))
    probability[np.isin(corrected.how, (AUDITED, MOVED))] = 1.0
    probability[(corrected.how == WRONG) | (corrected.table.cluster == JUNK)] = 0.0
    return probability


def _audit(run: Run) -> Audit | None:
    return None if run.corrected.junk.all() else read_audit(run)


def _confidence(run: Run, rows: Int[np.ndarray, " n"], cluster: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the confidence that images had in the clusters from which they were drawn, by the prototypes of now."""
    corrected = run.corrected
    confidence: Float[np.ndarray, " n"] = corrected.table.confidence[rows].astype(np.float64)
    away = np.flatnonzero((corrected.table.cluster[rows] != cluster) & np.isin(cluster, corrected.prototypes.ids))
    if len(away):
        cosines = run.embedding_rows[rows[away]] @ corrected.prototypes.vectors.T / CONFIDENCE_TEMPERATURE
        weight = np.exp(cosines - cosines.max(axis=1, keepdims=True))
        own = rows_of(cluster[away], corrected.prototypes.ids)
        confidence[away] = weight[np.arange(len(away)), own] / weight.sum(axis=1)
    return confidence
