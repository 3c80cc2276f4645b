"""Types are what users of a type checker get: none is missing, and the code of a user is read."""

import inspect
import tomllib
from pathlib import Path

import bayesfair as bf

ROOT = Path(__file__).resolve().parents[2]

LOOSE = {
    # a prior has many forms, some of them earlier audits
    "audit.prior", "beliefs.prior", "fit.prior", "simulate.prior",
    # beliefs may be any labelled array
    "best_arm_probability.rewards_or_beliefs", "best_mean_probability.rewards_or_beliefs",
    "fairness_regret.selection_probability", "fairness_regret.p_best",
    "smallest_eps2.selection_probability",
    # implementations behind overloads; a Checkpoint of our own may stand there too
    "audit.data", "audit.partial",
    # of an optional package, checked where it arrives
    "fit.client", "simulate.client",
    # what ArviZ returns, which carries no types
    "loo.return",
}  # fmt: skip
"""Parameters of public functions that any value may be given for; this set only ever shrinks."""


def test_public_functions_say_what_they_take_and_return():
    found = set()
    for name in bf.__all__:
        function = getattr(bf, name)
        if not inspect.isfunction(function):
            continue
        signature = inspect.signature(function)
        kinds = {p.name: p.annotation for p in signature.parameters.values()}
        kinds["return"] = signature.return_annotation
        found |= {f"{name}.{n}" for n, kind in kinds.items() if kind in ("Any", inspect._empty)}
    assert found <= LOOSE, found - LOOSE
    assert LOOSE <= found, LOOSE - found


def test_the_type_checker_reads_the_code_of_a_user_as_strictly_as_ours():
    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert mypy["strict"] is True
    assert "tests/guards/user_code.py" in mypy["files"]
    assert (ROOT / "bayesfair" / "py.typed").exists()


def test_type_checkers_see_the_names_that_are_public():
    """A stub exports what is in its ``__all__``, and nothing else."""
    import ast

    tree = ast.parse((ROOT / "bayesfair" / "__init__.pyi").read_text())
    imported = {
        alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    (listed,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"
    ]
    assert set(listed) == imported == set(bf.__all__)


def test_the_types_of_a_log_name_every_field_that_it_takes():
    from bayesfair.history.given import GivenFields

    fields = set(inspect.signature(bf.History).parameters) - {"arm", "reward"}
    assert set(GivenFields.__annotations__) == fields
