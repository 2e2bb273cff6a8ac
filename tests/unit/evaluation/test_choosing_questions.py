"""Selection of images to check: values worked out by hand, and a plain greedy oracle."""

import numpy as np
import pytest

from propos.evaluation.questions import choose_questions


def by_angle(*degrees):
    angles = np.deg2rad(np.array(degrees, dtype=np.float64))
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def nobody(count):
    return np.zeros(count, dtype=bool)


def test_the_first_question_is_about_the_crowd_far_from_its_prototype():
    # Two clusters at 0° and 90°; three images between them at 38° 40° 42°, one outlier at -60°.
    images = by_angle(0, 2, -2, 90, 88, 38, 40, 42, -60)
    cluster = np.array([7, 7, 7, 9, 9, 7, 7, 7, 7])
    questions = choose_questions(images, by_angle(0, 90), np.array([7, 9]), cluster, nobody(9), 2)
    # 40° serves three badly served images; then the outlier is worse served than what is left.
    assert set(questions.rows.tolist()) == {6, 8}
    assert questions.cluster.tolist() == [7, 7]
    assert questions.alternative.tolist() == [9, 9]


@pytest.mark.full
def test_the_choice_is_that_of_a_plain_greedy_sum():
    draw = np.random.default_rng(0)
    images = unit(draw.standard_normal((300, 5)))
    prototypes = unit(draw.standard_normal((4, 5)))
    cluster = (images @ prototypes.T).argmax(axis=1)
    questions = choose_questions(images, prototypes, np.arange(4), cluster, nobody(300), 12)
    reached, expected = (images @ prototypes.T).max(axis=1), []
    for _ in range(12):
        gains = [sum(max(float(images[i] @ images[s]) - reached[i], 0) for i in range(300)) for s in range(300)]
        best = int(np.argmax([-1 if s in expected else gain for s, gain in enumerate(gains)]))
        expected.append(best)
        reached = np.maximum(reached, images @ images[best])
    assert sorted(questions.rows.tolist()) == sorted(expected)


def test_groups_lie_between_two_clusters_and_the_largest_comes_first():
    draw = np.random.default_rng(1)
    images, prototypes = unit(draw.standard_normal((200, 4))), unit(draw.standard_normal((5, 4)))
    ids = np.array([3, 11, 4, 20, 8])
    cluster = ids[(images @ prototypes.T).argmax(axis=1)]
    questions = choose_questions(images, prototypes, ids, cluster, nobody(200), 40)
    assert questions.cluster.tolist() == cluster[questions.rows].tolist()
    assert (questions.group[1:] >= questions.group[:-1]).all()
    sizes = np.bincount(questions.group)
    assert (sizes[1:] <= sizes[:-1]).all()
    for group in range(len(sizes)):
        mine = questions.group == group
        pairs = {frozenset(pair) for pair in zip(questions.cluster[mine], questions.alternative[mine], strict=True)}
        assert len(pairs) == 1
    second = np.argsort(-(images[questions.rows] @ prototypes.T), axis=1)[:, 1]
    assert questions.alternative.tolist() == ids[second].tolist()


def test_a_confirmed_image_is_not_asked_again_and_covers_its_neighbours():
    images = by_angle(0, 90, 39, 40, 41, -50)
    cluster, confirmed = np.array([0, 1, 0, 0, 0, 0]), nobody(6)
    first = choose_questions(images, by_angle(0, 90), np.arange(2), cluster, confirmed, 1)
    assert first.rows.tolist() == [3]
    confirmed[3] = True
    again = choose_questions(images, by_angle(0, 90), np.arange(2), cluster, confirmed, 1)
    assert again.rows.tolist() == [5]  # the crowd about 40° is spoken for


def test_junk_is_not_asked_about_and_the_number_of_questions_is_limited():
    images, cluster = by_angle(0, 30, 60, 90), np.array([0, -1, 1, 1])
    questions = choose_questions(images, by_angle(0, 80), np.arange(2), cluster, nobody(4), 100)
    assert sorted(questions.rows.tolist()) == [0, 2, 3]
    none = choose_questions(images, by_angle(0, 80), np.arange(2), cluster, np.ones(4, bool), 5)
    assert len(none.rows) == 0
