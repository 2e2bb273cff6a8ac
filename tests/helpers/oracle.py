"""The losses once more, in plain loops over numpy arrays, written from the paper's equations."""

import math

import numpy as np


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
