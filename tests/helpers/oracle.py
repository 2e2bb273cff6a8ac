"""The losses once more, in plain loops over numpy arrays, written from the paper's equations."""

import math

import numpy as np
import pytest
import torch
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


def check(ours, theirs, point):
    """Compare a loss and its gradient with plain loops and their finite differences."""
    tensor = torch.tensor(point, requires_grad=True)
    loss = ours(tensor)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(theirs(point), abs=1e-9)
    np.testing.assert_allclose(tensor.grad.numpy(), finite_difference(theirs, point), atol=1e-7)


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


def proto_nce_as_released(query, labels, centres, concentrations, drawn):
    """The batch's prototypes, a row for each image, then those drawn: the own row against all rows."""
    rows = [*labels, *drawn]
    losses = []
    for place, q in enumerate(query):
        scores = [math.exp(float(unit(q) @ centres[row]) / concentrations[row]) for row in rows]
        losses.append(-math.log(scores[place] / sum(scores)))
    return sum(losses) / len(losses)


def instance_softmax(embeddings, bank, images, temperature):
    total = 0.0
    for embedding, own in zip(embeddings, images, strict=True):
        scores = [math.exp(float(unit(embedding) @ row) / temperature) for row in bank]
        total -= math.log(scores[own] / sum(scores))
    return total / len(embeddings)


def feature_decorrelation(embeddings, temperature):
    rows = np.array([unit(row) for row in embeddings])
    columns = [unit(column) for column in rows.T]
    total = 0.0
    for place, column in enumerate(columns):
        scores = [math.exp(float(column @ other) / temperature) for other in columns]
        total -= math.log(scores[place] / sum(scores))
    return total / len(columns)


def pseudo_labels(assignments, labels):
    known = [-math.log(row[label]) for row, label in zip(assignments, labels, strict=True) if label >= 0]
    return sum(known) / max(1, len(known))


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


def agreed_on(embeddings, labels, most):
    """Which images have the cluster of all their k nearest, k chosen as DCBoost's paper says."""
    rows, found = range(len(embeddings)), {}
    for k in range(1, min(most, len(embeddings) - 1) + 1):
        chosen = []
        for i in rows:
            near = sorted((j for j in rows if j != i), key=lambda j: -cosine(embeddings[i], embeddings[j]))[:k]
            chosen.append(labels[i] >= 0 and all(labels[j] == labels[i] for j in near))
        found[k] = chosen
    return found[max(found, key=lambda k: (k * sum(found[k]), -k))]


def confident_pull(online, target, labels):
    """The pull as a sum over pairs of images, as the notes write it."""
    present, total = sorted({int(label) for label in labels if label >= 0}), 0.0
    for k in present:
        ours = [unit(v) for v, label in zip(online, labels, strict=True) if label == k]
        theirs = [unit(v) for v, label in zip(target, labels, strict=True) if label == k]
        weight = 1 / (np.linalg.norm(sum(ours)) * np.linalg.norm(sum(theirs)))
        total += weight * sum(float(np.sum((a - b) ** 2)) for a in ours for b in theirs)
    return total / (2 * max(1, len(present)))


def confident_push(online, target, labels):
    ours, theirs = prototypes(online, labels), prototypes(target, labels)
    rows = range(len(ours))
    apart = [float(np.sum((ours[a] - theirs[b]) ** 2)) for a in rows for b in rows if a != b]
    return -float(np.mean(apart)) if apart else 0.0


def neighbour_agreement(first, second):
    return -float(
        np.mean([math.log(sum(p * q for p, q in zip(a, b, strict=True))) for a, b in zip(first, second, strict=True)])
    )


def self_label(plain, strong, above, by_cluster=False):
    """A weighted cross-entropy as SCAN's code has it: a class weighs all over its images; over the sum of weights.

    By cluster, with FlexMatch's thresholds.
    """
    counted = [int(np.argmax(p)) for p in plain if max(p) > above]
    most = max((counted.count(k) for k in counted), default=0)

    def threshold(k):
        share = counted.count(k) / most
        return above * share / (2 - share)

    sure = [
        (int(np.argmax(p)), s)
        for p, s in zip(plain, strong, strict=True)
        if most and max(p) > (threshold(int(np.argmax(p))) if by_cluster else above)
    ]
    counts = {k: sum(own == k for own, _ in sure) for k, _ in sure}
    weights = [len(sure) / counts[k] for k, _ in sure]
    losses = [-math.log(s[k]) * weight for (k, s), weight in zip(sure, weights, strict=True)]
    return sum(losses) / sum(weights) if sure else 0.0


def weighted_information(students, teachers, shares, power):
    """TEMI's loss over both directions and all heads, as lists of views of images of heads of clusters."""
    images, heads, clusters = np.shape(students[0])
    total = 0.0
    for h in range(heads):
        for ours, theirs in ((0, 1), (1, 0)):
            for i in range(images):
                weight = np.mean([teachers[0][i][g] @ teachers[1][i][g] for g in range(heads)])
                terms = [
                    (students[ours][i][h][k] * teachers[theirs][i][h][k]) ** power / shares[h][k]
                    for k in range(clusters)
                ]
                total -= weight * math.log(sum(terms)) / images / 2
    return total / heads


def cluster_matching(first, second):
    ours, theirs = np.transpose(first), np.transpose(second)
    total = 0.0
    for k, column in enumerate(ours):
        scores = [math.exp(cosine(column, other)) for other in theirs]
        total -= math.log(scores[k] / sum(scores))
    return total / len(ours)


def nearest_in_batch(features):
    rows = range(len(features))
    return [min((j for j in rows if j != i), key=lambda j: np.sum((features[i] - features[j]) ** 2)) for i in rows]


def local_pairs(image, neighbour, again, features):
    """Whom NNM puts together, pair by pair."""
    near = nearest_in_batch(features)
    ours = [*image, *again]
    theirs = [*neighbour, *(image[j] for j in near)]
    return np.array(ours), np.array(theirs)


def mutual_information(first, second):
    """IIC's loss as its code has it: of all pairs of clusters, over all images and both orders."""
    clusters = range(len(first[0]))
    joint = np.zeros((len(clusters), len(clusters)))
    for p, q in zip(first, second, strict=True):
        for k in clusters:
            for j in clusters:
                joint[k, j] += (p[k] * q[j] + p[j] * q[k]) / 2
    joint /= joint.sum()
    ours, theirs = joint.sum(axis=1), joint.sum(axis=0)
    return -sum(
        joint[k, j] * (math.log(joint[k, j]) - math.log(ours[k]) - math.log(theirs[j]))
        for k in clusters
        for j in clusters
    )


def labelled_contrast(first, second, labels, temperature):
    """NT-Xent in which images of one label are not in each other's denominators."""
    rows, twice = [*first, *second], [*labels, *labels]
    half, total = len(first), 0.0
    for i, row in enumerate(rows):
        own = (i + half) % len(rows)
        told = [j for j in range(len(rows)) if j not in (i, own) and not (twice[j] == twice[i] and twice[i] >= 0)]
        scores = {j: math.exp(cosine(row, rows[j]) / temperature) for j in (own, *told)}
        total -= math.log(scores[own] / sum(scores.values()))
    return total / len(rows)


def several_labels(assignments, labels):
    """Cross-entropy on the softmax of chances, over all pairs of an image and a label of it."""
    losses = []
    for row, of_image in zip(assignments, labels, strict=True):
        scores = [math.exp(chance) for chance in row]
        losses += [-math.log(score / sum(scores)) for score, own in zip(scores, of_image, strict=True) if own]
    return sum(losses) / len(losses)


def soft_cross_entropy(codes, assignments):
    rows = zip(codes, assignments, strict=True)
    return -sum(q * math.log(p) for code, row in rows for q, p in zip(code, row, strict=True)) / len(codes)


def codes(embeddings, prototypes, sharpness, turns):
    """SwAV's codes as its code has them: a matrix of prototypes by images, its rows and columns scaled by turns."""
    matrix = np.exp(np.array([[cosine(row, c) for row in embeddings] for c in prototypes]) / sharpness)
    matrix /= matrix.sum()
    for _ in range(turns):
        matrix /= matrix.sum(axis=1, keepdims=True) * len(prototypes)
        matrix /= matrix.sum(axis=0, keepdims=True) * len(embeddings)
    return (matrix / matrix.sum(axis=0, keepdims=True)).T


def graph_contrast(first, again, neighbour, images, partners, table, weights, temperature):
    """GCC's contrast: over rows with the numbers of their images, given those that are near each, itself included."""
    rows = [*zip(first, images, strict=True), *zip(again, images, strict=True), *zip(neighbour, partners, strict=True)]
    total = 0.0
    for i, anchor in enumerate(first):
        rest = sum(math.exp(cosine(anchor, row) / temperature) for row, image in rows if image not in table[i])
        own = math.exp(cosine(anchor, again[i]) / temperature)
        own += weights[i] * math.exp(cosine(anchor, neighbour[i]) / temperature)
        total -= math.log(own / rest) if rest else 0.0
    return total / len(first)


def reranked(keys, count, wide):
    images = range(len(keys))
    cosines = [[cosine(keys[i], keys[j]) for j in images] for i in images]
    nearest = [sorted(images, key=lambda j, i=i: -cosines[i][j])[:count] for i in images]
    around = np.array([[float(j in nearest[i]) for j in images] for i in images])
    for _ in range(2):
        both = around + around.T
        around = np.array([unit(sum(cosines[i][j] ** 2 * both[j] for j in nearest[i][:wide])) for i in images])
    alike = around @ around.T + 1e-5 * np.array(cosines)  # of equals the nearer
    return [sorted(images, key=lambda j, i=i: -alike[i][j])[:count] for i in images]


def inside_clusters(keys, labels, centres, share):
    ratios = {}
    for place, (key, own) in enumerate(zip(keys, labels, strict=True)):
        away = [float(np.linalg.norm(unit(key) - unit(centre))) for centre in centres]
        if own >= 0:
            ratios[place] = away[own] / min(away[:own] + away[own + 1 :])
    kept = sorted(ratios, key=lambda place: ratios[place])[: math.floor(share * len(labels))]
    return [place in kept for place in range(len(labels))]


def neighbour_alignment(prediction, target, neighbours, kept):
    pulls = [
        float(np.sum((unit(p) - unit(target[j])) ** 2)) if keep else 0.0
        for p, near, keep in zip(prediction, neighbours, kept, strict=True)
        for j in near
    ]
    return sum(pulls) / len(pulls)


def over_centres(embedding, centres, temperature):
    scores = [math.exp(float(unit(embedding) @ centre) / temperature) for centre in centres]
    return [score / sum(scores) for score in scores]


def centre_agreement(embeddings, others, centres, labels, temperature, share):
    total = 0.0
    for mine, other, own in zip(embeddings, others, labels, strict=True):
        said, wanted = (over_centres(each, centres, temperature) for each in (mine, other))
        wanted = [(1 - share) * q + share * (k == own) for k, q in enumerate(wanted)]
        total -= sum(w * math.log(p) for w, p in zip(wanted, said, strict=True))
    return total / len(embeddings)


def centre_learning(embeddings, centres, labels, temperature):
    said = [over_centres(each, centres, temperature) for each in embeddings]
    return -sum(math.log(row[own]) for row, own in zip(said, labels, strict=True)) / len(said)


def centre_learning_gradient(embeddings, centres, labels, temperature):
    """The derivative by the centres if each image's other cosines were constants."""
    gradient = np.zeros_like(centres)
    for mine, own in zip(embeddings, labels, strict=True):
        left = 1 - over_centres(mine, centres, temperature)[own]
        gradient[own] -= left * unit(mine) / temperature / len(embeddings)
    return gradient


def local_aggregation(embeddings, bank, images, clusterings, temperature, background):
    total = 0.0
    for mine, image in zip(embeddings, images, strict=True):
        scores = [float(unit(mine) @ row) for row in bank]
        near = sorted(range(len(bank)), key=lambda row: -scores[row])[:background]
        close = {image}
        for labels in clusterings:
            known = dict(enumerate(int(label) for label in labels))
            own = known.get(int(image), -1)
            close |= {row for row, label in known.items() if label == own and own >= 0}
        weights = {row: math.exp(scores[row] / temperature) for row in near}
        held = sum(weight for row, weight in weights.items() if row in close) / sum(weights.values())
        total -= math.log(held + 1e-7)
    return total / len(embeddings)


def student(embeddings, centres, spread):
    """How much each image belongs to each centre: the t distribution of one degree of freedom, of unit vectors."""
    rows = []
    for mine in embeddings:
        kernel = [1 / (1 + float(np.sum((unit(mine) - unit(centre)) ** 2)) / spread) for centre in centres]
        rows.append([each / sum(kernel) for each in kernel])
    return np.array(rows)


def sharpened(assignments):
    sizes = [sum(row[k] for row in assignments) for k in range(assignments.shape[1])]
    rows = [[q * q / size for q, size in zip(row, sizes, strict=True)] for row in assignments]
    return np.array([[each / sum(row) for each in row] for row in rows])


def sharpening(assignments, wanted):
    total = 0.0
    for said, should in zip(assignments, wanted, strict=True):
        total += sum(p * math.log(p / q) for p, q in zip(should, said, strict=True) if p > 0)
    return total / len(assignments)


def reconstruction(made, pixels):
    return sum(float(np.mean((a - b) ** 2)) for a, b in zip(made, pixels, strict=True)) / len(made)


def contrastive_experts(queries, keys, negatives, prototypes, gate, temperature):
    """The bound of EM, written out: −Σ_k q_k (log π_k + log φ_k − log q_k) of each image, q the posterior."""
    total = 0.0
    for mine, own, trust in zip(queries, keys, gate, strict=True):
        told = []
        for k, prototype in enumerate(prototypes):
            near = unit(mine[k]) + prototype
            scores = [math.exp(float(near @ each) / temperature) for each in (unit(own[k]), *negatives[:, k])]
            told.append(scores[0] / sum(scores))
        joint = [share * phi for share, phi in zip(trust, told, strict=True)]
        posterior = [each / sum(joint) for each in joint]
        total -= sum(q * (math.log(each) - math.log(q)) for q, each in zip(posterior, joint, strict=True))
    return total / len(queries)
