"""A file imports only from lower floors; nothing heavy is loaded before it is needed."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "bayesfair"

FLOOR = {
    "errors": 0, "typing": 0,
    "base": 1, "kernels": 1,
    "examples": 2, "rewards": 2, "history": 2, "comparisons": 2,
    "families": 3, "fairness": 3, "performance": 3, "ranking": 3, "readers": 3,
    "inference": 4, "plots": 4, "policies": 4,
    "audit": 5, "models": 5, "simulation": 5, "theory": 5, "value": 5,
    "report": 6,
    "warm_up": 6,
    "cli": 7,
    "__main__": 8,
}  # fmt: skip
"""Rooms of the house by floor; a file imports only from lower floors, or from its own room."""

HEAVY = (
    "pymc",
    "pytensor",
    "arviz",
    "matplotlib",
    "pandas",
    "xarray",
    "pyarrow",
    "scipy.stats",
    "jinja2",
)


def _modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] != "__init__":
            yield path, parts[0]


MODULES = list(_modules())


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(tree, *, top_level):
    nodes = tree.body if top_level else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module
            if node.module == "bayesfair":
                yield from (f"bayesfair.{alias.name}" for alias in node.names)


def test_floors():
    wrong = []
    for path, place in MODULES:
        assert place in FLOOR, f"{place} has no floor yet"
        for name in imports(tree_of(path), top_level=False):
            if name is None or not name.startswith("bayesfair."):
                continue
            other = name.split(".")[1]
            if other in FLOOR and other != place and FLOOR[other] >= FLOOR[place]:
                wrong.append(f"{path.relative_to(PACKAGE)} ({place}) imports {other}")
    assert not wrong


def test_heavy_imports_wait():
    early = [
        f"{path.relative_to(PACKAGE)} imports {name} at the top"
        for path, place in MODULES
        if place != "models"  # loaded only to build a model
        for name in imports(tree_of(path), top_level=True)
        if name and any(name == h or name.startswith(h + ".") for h in HEAVY)
    ]
    assert not early


def loaded_after(code):
    done = subprocess.run(
        [sys.executable, "-c", code + "; import sys; print(*sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stdout.splitlines()[-1].split())


def test_import_loads_nothing_heavy():
    loaded = loaded_after("import bayesfair")
    assert not loaded & {"numpy", "scipy", "numba", "pymc", "arviz", "matplotlib", "pandas"}


def test_an_audit_never_loads_the_samplers():
    loaded = loaded_after(
        "import bayesfair as bf; from bayesfair import examples; "
        "a = bf.audit(bf.read_history(examples.path('ecmo')), seed=1); str(a); a.to_dict()"
    )
    assert not loaded & {
        "pymc",
        "pytensor",
        "arviz",
        "matplotlib",
        "pandas",
        "xarray",
        "scipy.stats",
    }


def test_case_94_an_audit_works_where_pymc_cannot_be_imported():
    code = (
        "import sys; sys.modules['pymc'] = None; sys.modules['pytensor'] = None; "
        "import bayesfair as bf; from bayesfair import examples; "
        "print(bf.audit(bf.read_history(examples.path('ecmo')), seed=1).verdict); "
        "duels = bf.Comparisons.from_counts(['a'], ['b'], [7], [3]); "
        "mode = bf.fit(duels, prior_sd=float('inf'), seed=1)['mode']; "
        "print(round(float(mode['log_worth'][0]), 4))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # ln(7/3)/2: the gap of the maximum-likelihood fit, centred
    assert done.stdout.split() == ["undetermined", "0.4236"]


def test_functions_that_share_a_module_s_name_stay_functions():
    code = (
        "import bayesfair.audit, bayesfair.history.history; import bayesfair as bf; "
        "from bayesfair.audit import Audit; print(callable(bf.audit), callable(bf.History))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_every_public_name_loads():
    import bayesfair

    assert len(bayesfair.__all__) <= 54, "others go to bf.plots, bf.theory, bf.ranking, ..."
    missing = []
    for name in bayesfair.__all__:
        try:
            getattr(bayesfair, name)
        except (AttributeError, ImportError) as error:
            missing.append(f"{name}: {error}")
    assert not missing
