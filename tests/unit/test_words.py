"""Phrases that stay out of what people read; CONTRIBUTING.md has the rules."""

import ast
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = {"settings.md", "commands.md"}  # from the source
PAGES = [*ROOT.glob("*.md"), *(page for page in sorted(DOCS.glob("*.md")) if page.name not in GENERATED)]
# Each with the term to use instead.
PHRASES = {
    r"goe?s? on|(going|gone|went) on (from|with|where)": "continue, resume",
    r"anew": "again, from scratch, re-initialise",
    r"beside": "next to, compared with",
    r"(is|are) there already|(is|are) not there yet": "already exists, must not exist",
    r"written over": "overwritten",
    r"none of this name": "unknown",
    r"sureness|surest": "confidence, most confident",
    r"heads? answers?|who answers": "the head decides",
    r"those nearest": "nearest neighbours",
    r"taken to its end": "trained",
    r"nothing is said of": "not measured",
    r"holds? no colour": "greyscale",
    r"known again": "recognised",
    r"unless told|as told": "by default",
    r"whoever|that which|of which the": "name the subject",
    r"told apart": "distinguished",
    r"what (it|they) makes? of": "its outputs, results",
    r"about so long": "approximate time",
}
FORBIDDEN = re.compile("|".join(rf"\b(?:{phrase})\b" for phrase in PHRASES), flags=re.IGNORECASE)


def found(text, name):
    lines = enumerate(text.splitlines(), start=1)
    return [f"{name}:{number}: {match[0]!r}" for number, line in lines for match in FORBIDDEN.finditer(line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_use_the_fields_words(page):
    assert found(page.read_text(), page.name) == []


def parsed():
    """Yield the source files, parsed."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        yield path.relative_to(ROOT), ast.parse(path.read_text())


def documented(tree):
    """Yield whatever in a file has a docstring, with it."""
    kinds = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), text


def test_messages_and_docstrings_use_the_fields_words():
    wrong = []
    for path, tree in parsed():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                wrong += found(node.value.replace("\n", " "), f"{path}:{node.lineno}")
    assert wrong == []


def test_comments_use_the_fields_words():
    wrong = []
    for folder in ("src", "tests", "benchmarks", "attacks", "examples", "docs"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            with path.open() as file:
                comments = [
                    token for token in tokenize.generate_tokens(file.readline) if token.type == tokenize.COMMENT
                ]
            for comment in comments:
                wrong += found(comment.string, f"{path.relative_to(ROOT)}:{comment.start[0]}")
    assert wrong == []


def test_the_page_uses_the_fields_words():
    sources = [*sorted((ROOT / "web" / "src").rglob("*.ts")), *sorted((ROOT / "web" / "public").glob("*.html"))]
    assert [each for path in sources for each in found(path.read_text(), path.name)] == []


def test_docstrings_begin_with_what_a_thing_does_or_is():
    wrong = [
        f"{path}:{line}: {text.splitlines()[0]}"
        for path, tree in parsed()
        for line, text in documented(tree)
        if text.split()[0] in {"What", "Where", "Who", "How", "Of"}
    ]
    assert wrong == []


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_generated_pages_use_the_fields_words(name):
    assert found((DOCS / name).read_text(), name) == []
