"""Write the list of all texts that the program can show into docs/notebook/messages.md: `python docs/messages.py`.

The list is made from string literals: messages, help, notes, and the texts of the page. The list of the texts before
they were rewritten is kept.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "notebook" / "messages.md"
SOURCE, WEB = ROOT / "src" / "propos", ROOT / "web" / "src"
WORDS = re.compile(r"[A-Za-z]{2,}.* .*[a-z]{2,}|[a-z]{2,} .*\{", flags=re.DOTALL)
MARKUP = re.compile(r"\s*(<|:root|default-src|[a-z]+=\"|#/|\$|translate\(|main >)")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
HEAD = """# Messages

All texts that the program can show, as they stand in the source: before they were rewritten in plain words (commit
00d0b84) and on {date} (commit {commit}). Braces hold values. `python docs/messages.py` writes the newer list.

## After

```text
"""


def main() -> None:
    """Replace the list of today."""
    before = PAGE.read_text().split("\n## Before\n", 1)[1]
    commit, date = subprocess.check_output(
        ["git", "log", "-1", "--format=%h %cs", "--", "src", "web/src"], cwd=ROOT, text=True
    ).split()
    files = [*sorted(SOURCE.rglob("*.py")), *sorted(WEB.rglob("*.ts"))]
    parts = [(path.relative_to(ROOT), list(dict.fromkeys(_texts(path)))) for path in files]
    listed = "\n\n".join("\n".join([str(path), *(f"  {text}" for text in texts)]) for path, texts in parts if texts)
    PAGE.write_text(f"{HEAD.format(commit=commit, date=date)}{listed}\n```\n\n## Before\n{before}")


def _texts(path: Path) -> Iterator[str]:
    """Yield the texts of a file, each on one line."""
    found = _of_page(path.read_text()) if path.suffix == ".ts" else _of_program(path)
    for text in found:
        if WORDS.search(text) and not MARKUP.match(text):
            yield " ".join(text.split())


def _of_program(path: Path) -> Iterator[str]:
    """Yield string literals; of docstrings only the commands', which are their help."""
    tree = ast.parse(path.read_text())
    documented = {id(node.body[0].value) for node in ast.walk(tree) if _has_docstring(node)}
    if path.parent.name == "cli":
        documented -= {id(node.body[0].value) for node in tree.body if _is_command(node, path.stem)}
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and _is_outermost(node, tree):
            yield "".join(_part(value) for value in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented | inner:
            yield node.value


def _has_docstring(node: ast.AST) -> bool:
    kinds = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    return isinstance(node, kinds) and ast.get_docstring(node) is not None


def _is_command(node: ast.stmt, module: str) -> bool:
    """Return whether a function is a command: it has options, or the name of its module."""
    if not isinstance(node, ast.FunctionDef) or not _has_docstring(node):
        return False
    return node.name == module or any("Annotated" in ast.unparse(each) for each in node.args.args)


def _is_outermost(node: ast.JoinedStr, tree: ast.AST) -> bool:
    others = (each for each in ast.walk(tree) if isinstance(each, ast.JoinedStr) and each is not node)
    return not any(node is part for other in others for part in ast.walk(other))


def _part(value: ast.expr) -> str:
    if isinstance(value, ast.Constant):
        return str(value.value)
    assert isinstance(value, ast.FormattedValue)
    return f"{{{ast.unparse(value.value)}}}"


def _of_page(text: str) -> Iterator[str]:
    """Yield the string literals of TypeScript; `${value}` becomes `{value}`."""
    code = re.sub(r"/\*.*?\*/|(?<!:)//[^\n]*", "", text, flags=re.DOTALL)
    for plain, template in LITERAL.findall(code):
        yield plain or template.replace("${", "{")


if __name__ == "__main__":
    main()
