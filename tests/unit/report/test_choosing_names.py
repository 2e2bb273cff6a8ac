"""Names for clusters: the best word by hand, and words from WordNet that are known."""

import numpy as np
import pytest

from propos.review.naming import Suggestion, Vocabulary, imagenet_words, suggest

# Classes: spaniel, beagle, tabby, truck. Kinds above: dog, cat, animal; "thing" is above all and names nothing.
WORDS = ("spaniel", "beagle", "tabby", "truck", "dog", "cat", "animal", "thing")
UNDER = np.array(
    [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [1, 1, 0, 0],
        [0, 0, 1, 0],
        [1, 1, 1, 0],
        [1, 1, 1, 1],
    ],
    dtype=bool,
)
DEPTH = np.array([4, 4, 4, 1, 3, 3, 2, 0])
TOY = Vocabulary(WORDS, UNDER, DEPTH, np.array([True] * 7 + [False]))


def test_the_word_that_covers_a_cluster_and_not_its_neighbours_is_taken():
    sums = np.array([[4.0, 5.0, 0.5, 0.5], [0.0, 0.0, 9.0, 1.0], [0.0, 1.0, 0.5, 8.5]])
    found = suggest(sums, np.array([10, 10, 10]), TOY)
    assert [each.word for each in found] == ["dog", "tabby", "truck"]
    dogs = found[0]
    assert dogs.agreement == pytest.approx(0.9)  # 4 + 5 of 10
    assert dogs.share == pytest.approx(0.9)  # 9 of 10 dogs
    assert dogs.fit == pytest.approx(0.9)
    assert dogs.examples == ("beagle", "spaniel")
    assert dogs.evidence() == (
        "90% of its images look like dog (beagle, spaniel); 90% of all such images are in this cluster"
    )


def test_a_cluster_of_two_kinds_gets_the_kind_above_them():
    sums = np.array([[3.0, 3.0, 4.0, 0.0], [0.0, 0.0, 0.0, 10.0]])
    assert suggest(sums, np.array([10, 10]), TOY)[0].word == "animal"


@pytest.mark.parametrize(("agreement", "share", "sure"), [(0.8, 0.8, True), (0.2, 1.0, False), (1.0, 0.2, False)])
def test_thin_evidence_is_not_proposed(agreement, share, sure):
    assert Suggestion("dog", agreement, share, ()).sure == sure


def test_flat_words_have_no_kinds_above_them():
    found = suggest(np.array([[8.0, 2.0], [1.0, 9.0]]), np.array([10, 10]), Vocabulary.flat(["a red car", "a cat"]))
    assert [each.word for each in found] == ["a red car", "a cat"]
    assert found[0].examples == ()


def test_words_of_imagenet_are_in_the_order_of_its_classes():
    words = imagenet_words()
    assert words.words[:2] == ("tench", "goldfish")
    assert (words.words[207], words.words[281], words.words[817]) == ("golden retriever", "tabby", "sports car")
    assert (words.words[463], words.words[701], words.words[999]) == ("bucket", "parachute", "toilet tissue")
    dog = words.words.index("dog", 1000)
    assert np.flatnonzero(words.under[dog]).tolist() == list(range(151, 269))  # ImageNet's 118 dogs
    for general in ("entity", "artifact", "organism", "animal"):
        place = words.words.index(general, 1000)
        assert bool(words.names[place]) == (general == "animal")
