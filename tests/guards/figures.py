"""Figures of the house, counted over the syntax trees.

``python tests/guards/figures.py`` prints them; ``test_figures.py`` holds each to its limit.
``--write-table`` writes the table of floors into CONTRIBUTING.md; ``--since COMMIT`` prints where
the package has grown and shrunk since then.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "bayesfair"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"

HEAVY = {"pymc", "pytensor", "arviz", "xarray", "matplotlib", "pandas"}
"""What is worth waiting for: imports of ours inside functions may stand in front of these."""


@cache
def sources() -> dict[str, ast.Module]:
    """Return module name -> syntax tree, of the package and of the shipped models."""
    found = {}
    for folder, prefix in ((PACKAGE, "bayesfair"), (ROOT / "models", "bayesfair.models")):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join((prefix, *parts)).removesuffix(".__init__")
            found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


@cache
def walked(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes of a tree, found once."""
    return list(ast.walk(tree))


def _home(name: str) -> str | None:
    """Return the module that a dotted name lies in."""
    while name and name not in sources():
        name = name.rpartition(".")[0]
    return name or None


def imported(tree: ast.AST) -> set[str]:
    """Return the own modules that a tree imports, in the bodies of functions too."""
    found = set()
    for node in walked(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {home for name in names if name.startswith("bayesfair") and (home := _home(name))}
    return found


@cache
def arrows() -> dict[str, set[str]]:
    """Return module -> own modules that it imports, at any depth of its bodies."""
    return {name: imported(tree) - {name} for name, tree in sources().items()}


@cache
def circles() -> list[list[str]]:
    """Return the groups of modules that import each other, in a ring of any length (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    sys.setrecursionlimit(10_000)

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(arrows()[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            ring = []
            while True:
                ring.append(stack.pop())
                if ring[-1] == name:
                    break
            if len(ring) > 1:
                found.append(sorted(ring))

    for name in sorted(arrows()):
        if name not in index:
            visit(name)
    return found


def room(name: str) -> str:
    """Return the room of a module: the folder or file below the package that it stands in."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "bayesfair"


@cache
def floors() -> dict[str, int]:
    """Return room -> floor: one above the highest room that it imports from; the start counts.

    Rooms that import each other share a floor; it is the number of floors that counts.
    """
    above: dict[str, set[str]] = defaultdict(set)
    for name, others in arrows().items():
        if room(name) == "bayesfair":
            continue
        above[room(name)] |= {room(other) for other in others} - {room(name), "bayesfair"}
    height: dict[str, int] = {}

    def of(place: str, seen: tuple[str, ...]) -> int:
        if place not in height:
            below = [of(other, (*seen, place)) for other in above[place] if other not in seen]
            if seen and any(other in seen for other in above[place]):
                return 1 + max(below, default=-1)
            height[place] = 1 + max(below, default=-1)
        return height[place]

    return {place: of(place, ()) for place in sorted(above)}


def family_branches() -> list[str]:
    """Return where a family is told by its name, outside of ``families/``."""
    names = {"bernoulli", "finite", "poisson", "normal"}
    found = []
    for module, tree in sources().items():
        if room(module) in ("families", "models"):
            continue
        for node in walked(tree):
            if not isinstance(node, ast.Compare):
                continue
            sides = [node.left, *node.comparators]
            told = [
                leaf for side in sides for leaf in ast.walk(side)
                if isinstance(leaf, ast.Constant) and leaf.value in names
            ]  # fmt: skip
            if told:
                found.append(f"{module}:{node.lineno}")
    return found


def parameters() -> dict[str, int]:
    """Return function -> number of parameters, where there are more than 12."""
    found = {}
    for module, tree in sources().items():
        for node in walked(tree):
            if isinstance(node, ast.FunctionDef):
                a = node.args
                n = len(a.posonlyargs) + len(a.args) + len(a.kwonlyargs)
                n += (a.vararg is not None) + (a.kwarg is not None)
                if n > 12:
                    found[f"{module}.{node.name}"] = n
    return found


def private_imports() -> list[str]:
    """Return imports of names that begin with an underscore, from another file of ours."""
    return [
        f"{module}:{node.lineno} {alias.name}"
        for module, tree in sources().items()
        for node in walked(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayesfair")
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]


@cache
def _reaches_heavy() -> set[str]:
    """Return the modules that load something heavy at their top, or import one that does."""
    tops: dict[str, set[str]] = {}
    heavy = set()
    for name, tree in sources().items():
        tops[name] = set()
        for node in tree.body:
            if isinstance(node, ast.Import):
                if {alias.name.split(".")[0] for alias in node.names} & HEAVY:
                    heavy.add(name)
            elif isinstance(node, ast.ImportFrom) and node.module:
                if node.module.split(".")[0] in HEAVY:
                    heavy.add(name)
                tops[name] |= imported(node)
    while more := {name for name, below in tops.items() if below & heavy} - heavy:
        heavy |= more
    return heavy


def late_imports() -> list[str]:
    """Return own imports inside functions that stand in front of nothing heavy.

    Commands are left out: they are imported by a program that must start at once.
    """
    found = []
    for module, tree in sources().items():
        if room(module) in ("cli", "__main__"):
            continue
        imports = [n for n in walked(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
        for function in walked(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            inside = [n for n in imports if function.lineno <= n.lineno <= function.end_lineno]
            uses_heavy = any(
                alias.split(".")[0] in HEAVY
                for node in inside
                for alias in (
                    [node.module or ""]
                    if isinstance(node, ast.ImportFrom)
                    else [a.name for a in node.names]
                )
            )
            for inner in inside if not uses_heavy else ():
                light = imported(inner) - _reaches_heavy()
                found += [f"{module}:{inner.lineno} {other}" for other in sorted(light)]
    return sorted(set(found))


def statements(tree: ast.AST) -> int:
    """Return the number of statements of a tree, docstrings left out."""
    return sum(
        isinstance(node, ast.stmt)
        and not (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        )
        for node in ast.walk(tree)
    )


def by_definition(trees: Iterable[ast.Module]) -> Counter[str]:
    """Return the statements of each function, method and class body, and of all else under ""."""
    found: Counter[str] = Counter()
    for tree in trees:
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                found[node.name] += statements(node)
            elif isinstance(node, ast.ClassDef):
                methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
                for method in methods:
                    found[f"{node.name}.{method.name}"] += statements(method)
                found[node.name] += statements(node) - sum(map(statements, methods))
            else:
                found[""] += statements(node)
    return found


def since(commit: str) -> str:
    """Return how the statements of the package have changed since a commit, by definitions."""
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit, "bayesfair"], check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = [archive.extractfile(m) for m in archive if m.isfile() and m.name.endswith(".py")]
        then = by_definition(ast.parse(file.read()) for file in files if file is not None)
    now = by_definition(t for name, t in sources().items() if room(name) != "models")
    both = then.keys() & now.keys() - {""}
    rows = [
        ("definitions of both, by name", sum(then[n] for n in both), sum(now[n] for n in both)),
        ("definitions that are gone", sum(then[n] for n in then.keys() - now.keys()), 0),
        ("new definitions", 0, sum(now[n] for n in now.keys() - then.keys())),
        ("imports, constants, names that files show", then[""], now[""]),
        ("all", then.total(), now.total()),
    ]
    head = f"| statements | {commit} | now |\n|---|---|---|\n"
    return head + "\n".join(f"| {what} | {old} | {new} |" for what, old, new in rows)


def _first_line(place: str) -> str:
    """Return the first line of a room's docstring."""
    line = (ast.get_docstring(sources()[f"bayesfair.{place}"]) or "").splitlines()[0]
    return line.replace("|", "\\|").rstrip(".")


def table() -> str:
    """Return CONTRIBUTING's table: each room with its floor and the first line of its docstring."""
    lines = ["| floor | room | what |", "|---|---|---|"]
    for place, floor in sorted(floors().items(), key=lambda item: (item[1], item[0])):
        slash = "/" if (PACKAGE / place).is_dir() else ""
        lines.append(f"| {floor} | `{place}{slash}` | {_first_line(place)} |")
    return "\n".join(lines)


def with_table(text: str) -> str:
    """Return a text whose table of floors is that of the code."""
    begin = text.index("| floor |")
    return text[:begin] + table() + text[text.index("\n\n", begin) :]


def main() -> None:
    """Print every figure, and what it is made of where that is to be mended."""
    rings = circles()
    print(f"import circles: {len(rings)}")
    for ring in rings:
        print("   ", ", ".join(ring))
    height = floors()
    print(f"floors: {max(height.values()) + 1}")
    for floor in range(max(height.values()), -1, -1):
        print(f"    {floor}", ", ".join(place for place, at in height.items() if at == floor))
    for title, listed in (
        ("branches on a family's name", family_branches()),
        ("private names imported across files", private_imports()),
        ("late imports of own light modules", late_imports()),
    ):
        print(f"{title}: {len(listed)}")
        for line in listed if "-v" in sys.argv else ():
            print("   ", line)
    print("functions with more than 12 parameters:")
    for name, n in sorted(parameters().items(), key=lambda item: -item[1]):
        print(f"    {n} {name}")
    trees = [tree for name, tree in sources().items() if room(name) != "models"]
    print(f"statements: {sum(map(statements, trees))}")


if __name__ == "__main__":
    if "--write-table" in sys.argv:
        CONTRIBUTING.write_text(
            with_table(CONTRIBUTING.read_text(encoding="utf-8")), encoding="utf-8"
        )
    elif "--since" in sys.argv:
        print(since(sys.argv[sys.argv.index("--since") + 1]))
    else:
        main()
