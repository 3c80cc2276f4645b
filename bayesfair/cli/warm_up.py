"""The command ``bayesfair warm-up``: compile what later runs need."""

from __future__ import annotations

from bayesfair.cli.tools import note, say
from bayesfair.errors import OptionError

__all__ = ["warm_up_command"]


def warm_up_command() -> None:
    """Compile every kernel ahead of time, so that no later run waits for it.

    For images and for machines where bayesfair will not be able to write: run it once while the
    installation, or the folder that NUMBA_CACHE_DIR names, can be written. It takes some minutes.

    Example: `NUMBA_CPU_NAME=generic bayesfair warm-up`
    """
    from bayesfair.kernels.compiled import kernel_cache
    from bayesfair.warm_up import warm_up

    folder, writable = kernel_cache()
    if folder is None or not writable:
        raise OptionError(
            "compiled code cannot be kept: neither the folder of bayesfair nor the user's cache "
            "can be written. Let NUMBA_CACHE_DIR name a folder that can be.",
            kind="no_cache",
        )
    note("compiling ...")
    n = warm_up(progress=lambda done, total, what: note(f"{done} of {total} {what} compiled"))
    say(f"{n} compiled functions are kept in {folder}.")
