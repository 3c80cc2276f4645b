"""``bayesfair warm-up`` leaves nothing to be compiled later."""

import ast
import importlib
import inspect

import pytest

import bayesfair.kernels.compiled as places
from bayesfair.cli.warm_up import warm_up_command
from bayesfair.errors import OptionError
from bayesfair.warm_up import iter_kernels

# called by tests alone
UNUSED = {"laws.continuous_arms._cdf_rows", "simulation.thompson._one"}


def called_from_python():
    """Names of the compiled functions that plain Python calls, from the sources."""
    names = {name for name, _ in iter_kernels()}
    for home in sorted({name.rpartition(".")[0] for name in names}):
        module = importlib.import_module(f"bayesfair.kernels.{home}")
        tree = ast.parse(inspect.getsource(module))
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef) or "compiled" in {
                ast.unparse(one.func) if isinstance(one, ast.Call) else ""
                for one in function.decorator_list
            }:
                continue
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and f"{home}.{ast.unparse(call.func)}" in names:
                    yield f"{home}.{ast.unparse(call.func)}"


def test_every_kernel_that_python_calls_has_been_compiled(capsys):
    warm_up_command()
    wanted = set(called_from_python()) - UNUSED
    assert len(wanted) > 30
    kernels = dict(iter_kernels())
    assert [name for name in sorted(wanted) if not kernels[name].signatures] == []
    assert "compiled functions are kept in" in capsys.readouterr().out


def test_where_nothing_can_be_kept_it_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(places, "kernel_cache", lambda: (None, False))
    with pytest.raises(OptionError, match="NUMBA_CACHE_DIR"):
        warm_up_command()
