"""The losses once more, in plain loops over numpy arrays, written from the paper's equations."""

import math

import numpy as np
from scipy.optimize import linear_sum_assignment


def unit(vector):
    return vector / np.linalg.norm(vector)


def alignment(prediction, target):
    return float(np.mean([np.sum((unit(p) - unit(t)) ** 2) for p, t in zip(prediction, target, strict=True)]))


def prototypes(embeddings, labels):
    present = sorted({int(label) for label in labels if label >= 0})
    return [unit(sum(unit(e) for e, own in zip(embeddings, labels, strict=True) if own == k)) for k in present]


def prototype_scattering(online, target, labels, temperature):
    ours, twins = prototypes(online, labels), prototypes(target, labels)
    if len(ours) < 2:
        return 0.0
    total = 0.0
    for k, mu in enumerate(ours):
        own = math.exp(float(mu @ twins[k]) / temperature)
        others = sum(math.exp(float(mu @ ours[j]) / temperature) for j in range(len(ours)) if j != k)
        total -= math.log(own / (own + others))
    return total / len(ours)


def finite_difference(function, point, step=1e-6):
    gradient = np.zeros_like(point)
    for index in np.ndindex(point.shape):
        up, down = point.copy(), point.copy()
        up[index] += step
        down[index] -= step
        gradient[index] = (function(up) - function(down)) / (2 * step)
    return gradient


def cosine(a, b):
    return float(unit(a) @ unit(b))


def nt_xent(first, second, temperature):
    rows = [*first, *second]
    half, total = len(first), 0.0
    for i, row in enumerate(rows):
        scores = {j: math.exp(cosine(row, other) / temperature) for j, other in enumerate(rows) if j != i}
        total -= math.log(scores[(i + half) % len(rows)] / sum(scores.values()))
    return total / len(rows)


def cluster_balance(assignments):
    shares = [sum(row[k] for row in assignments) / len(assignments) for k in range(len(assignments[0]))]
    return math.log(len(shares)) + sum(share * math.log(share) for share in shares)


def info_nce(query, key, negatives, temperature):
    total = 0.0
    for q, k in zip(query, key, strict=True):
        own = math.exp(cosine(q, k) / temperature)
        total -= math.log(own / (own + sum(math.exp(cosine(q, n) / temperature) for n in negatives)))
    return total / len(query)


def proto_nce(query, labels, centres, concentrations):
    losses = []
    for q, label in zip(query, labels, strict=True):
        scores = [math.exp(float(unit(q) @ c) / phi) for c, phi in zip(centres, concentrations, strict=True)]
        if label >= 0:
            losses.append(-math.log(scores[label] / sum(scores)))
    return sum(losses) / max(1, len(losses))


def prototype_alignment(prediction, target, labels, temperature):
    ours, twins = prototypes(prediction, labels), prototypes(target, labels)
    return -sum(float(p @ t) for p, t in zip(ours, twins, strict=True)) / len(ours) / temperature


def prototype_uniformity(online, labels, temperature):
    ours = prototypes(online, labels)
    rows = range(len(ours))
    sums = [sum(math.exp(float(ours[k] @ ours[j]) / temperature) for j in rows if j != k) for k in rows]
    return sum(math.log(each) for each in sums) / len(ours)


def reweighted_alignment(prediction, target, labels, temperature):
    """The alignment of prototypes once more, as the paper's discussion writes it: a weighted sum over images."""
    present = sorted({int(label) for label in labels if label >= 0})
    total = 0.0
    for i, p in enumerate(prediction):
        for j, t in enumerate(target):
            for k in present:
                if labels[i] == k and labels[j] == k:
                    own = np.linalg.norm(
                        sum(unit(v) for v, label in zip(prediction, labels, strict=True) if label == k)
                    )
                    twin = np.linalg.norm(sum(unit(v) for v, label in zip(target, labels, strict=True) if label == k))
                    total += float(unit(p) @ unit(t)) / (own * twin) / len(present)
    return -total / temperature


def best_agreement(old, new, clusters):
    """How many images could keep their cluster's number if the new clusters were numbered as well as can be."""
    shared = np.zeros((clusters, clusters), int)
    for before, after in zip(old, new, strict=True):
        if before < clusters:
            shared[after, before] += 1
    return shared[linear_sum_assignment(-shared)].sum()
