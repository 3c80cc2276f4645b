"""The command ``bayesfair model``: a model of one's own from a template, checked."""

from __future__ import annotations

import importlib.util
import keyword
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bayesfair.cli.options import grouped
from bayesfair.cli.repeated import App
from bayesfair.cli.tools import check_targets, say
from bayesfair.errors import OptionError

__all__ = ["load_model", "model_app"]

model_app = App(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Models of your own, in PyMC: `new` writes a template, `check` holds one against what "
    "audits rely on.\n\nExample: `bayesfair model new mine`\n\nThen: `bayesfair model check "
    "mine.py:build --allow-code`",
)

_TEMPLATE = '''"""NAME: arms of one population, a PyMC model of the rewards for bayesfair."""

import numpy as np
import pymc as pm

READS = ("theta",)  # what bayesfair reads: one value per arm, dims ("arm",)


def build(history):
    """Return the unsampled model: change the priors; keep READS, coords and dims."""
    known = np.isfinite(history.reward)  # NaN is not observed
    arm, k = history.arm[known], len(history.arms)
    pulls = np.bincount(arm, minlength=k)
    total = np.bincount(arm, weights=history.reward[known], minlength=k)
    with pm.Model(coords={"arm": list(history.arms)}) as model:
        # what changes from log to log stands in pm.Data: the model is compiled once
        n = pm.Data("n", pulls, dims="arm")
        won = pm.Data("won", total.astype(int), dims="arm")
        mu = pm.Normal("mu", 0, 1.5)
        tau = pm.HalfNormal("tau", 1)
        z = pm.Normal("z", dims="arm")
        theta = pm.Deterministic("theta", pm.math.sigmoid(mu + tau * z), dims="arm")
        pm.Binomial("successes", n=n, p=theta, observed=won, dims="arm")
    return model


def log_prior(draws):
    """Return the log density of mu and tau, up to a constant: prior_sensitivity scales it."""
    return -0.5 * (draws["mu"] / 1.5) ** 2 - 0.5 * draws["tau"] ** 2
'''


@model_app.command("new")
@grouped
def new_command(
    name: Annotated[str, typer.Argument(help="Name of the model; NAME.py is written here.")],
) -> None:
    """Write NAME.py: a model of the rewards to start from, which passes its own check.

    Example: `bayesfair model new mine`
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise OptionError(
            f"NAME {name!r} must be a name that Python can import: letters, digits and _.",
            kind="bad_value",
            column="name",
            value=name,
        )
    target = Path(f"{name}.py")
    if target.exists():
        raise OptionError(
            f"{str(target)!r} exists and is left as it is; choose another name.",
            kind="target",
            column="name",
            value=name,
        )
    check_targets({"NAME": target}, read=None)
    target.write_text(_TEMPLATE.replace("NAME", name), encoding="utf-8")
    say(
        f"{target} is written.\n"
        f"bayesfair model check {target}:build --allow-code\n"
        f"bayesfair audit LOG --model {target}:build --allow-code"
    )


@model_app.command("check")
@grouped
def check_command(
    model: Annotated[str, typer.Argument(help="FILE.py:build, or the name of a shipped model.")],
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Run the code in FILE.py.")
    ] = False,
    simulations: Annotated[
        int, typer.Option(help="Simulated logs; more find smaller faults.")
    ] = 20,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 1,
) -> None:
    """Check a model: its READS and dims, its prior, and its posterior on simulated logs.

    Exit status 1 if something is found.

    Example: `bayesfair model check mine.py:build --allow-code --simulations 20`
    """
    from bayesfair.inference.model_check import check

    found = check(load_model(model, allow_code), simulations=simulations, seed=seed)
    say(str(found))
    if not found.passed:
        raise typer.Exit(1)


def load_model(model: str | None, allow_code: bool) -> Any:
    """Return what ``--model`` names: a shipped model's name, or the function in a file of code.

    Raises
    ------
    OptionError
        If it is a file and ``--allow-code`` was not given, or no such function can be had from it;
        or ``--allow-code`` was given for nothing.
    """
    file, colon, name = (model or "").rpartition(":")
    path = Path(file if colon else model or "")
    if path.suffix != ".py":
        if allow_code:
            raise OptionError(
                f"--allow-code has no effect: --model {model!r} is no FILE.py:build.",
                kind="unused_option",
                column="allow_code",
                value=True,
            )
        return model
    if not colon:
        name = "build"
    if not allow_code:
        raise OptionError(
            f"--model {model!r} would run the code in {str(path)!r}: read it, and add "
            "--allow-code.",
            kind="code",
            column="model",
            value=model,
        )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise OptionError(
            f"--model {model!r}: there is no file {str(path)!r}.",
            kind="no_file",
            column="model",
            value=model,
        )
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # classes defined in it look themselves up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise OptionError(
            f"--model {model!r}: its code ended with {type(error).__name__}: {error}.",
            kind="code_failed",
            column="model",
            value=model,
        ) from error
    finally:
        if before is not None:
            sys.modules[path.stem] = before
    if not callable(getattr(module, name, None)):
        functions = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise OptionError(
            f"--model {model!r}: {str(path)!r} has no function {name!r}. Found: "
            f"{', '.join(functions) or 'none'}.",
            kind="no_function",
            column="model",
            value=name,
        )
    return getattr(module, name)
