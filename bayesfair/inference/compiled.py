"""Machine code of PyMC models: one graph is compiled once in a process.

Data and labels are swapped: neither is in the machine code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["data_of", "labelled", "machine_code", "same_graph"]

_KEPT = 8
"""Graphs whose machine code is kept, those used last."""

_LARGEST = 1_000_000
"""Numbers in the data containers of a model that is kept: memory is not held for larger ones."""

_kept: list[tuple[Any, Any, Any]] = []


def data_of(model: Any) -> dict[str, Any]:
    """Return the current values of the model's data containers."""
    return {v.name: v.get_value() for v in model.data_vars}


def machine_code(model: Any) -> Any:
    """Return the model as nutpie samples it, compiled only if no model with its graph was before.

    Its draws have the labels of the model that was compiled: see `labelled`.

    Parameters
    ----------
    model : pymc.Model
        Continuous variables only.
    """
    import nutpie

    shapes = _known(model)
    for place, (known, had, code) in enumerate(_kept):
        if had == shapes and same_graph(known, model):
            _kept.append(_kept.pop(place))
            used = {variable.name for variable in code.shared_var_keys}
            data = {name: value for name, value in data_of(model).items() if name in used}
            return code.with_data(**data)
    code = nutpie.compile_pymc_model(model)
    if sum(value.size for value in data_of(model).values()) <= _LARGEST:
        _kept.append((model, shapes, code))
        del _kept[:-_KEPT]
    return code


def same_graph(first: Any, second: Any) -> bool:
    """Return whether two PyMC models differ in the values of their data containers only."""
    from pytensor.graph.basic import equal_computations

    inputs_1, inputs_2 = _inputs(first), _inputs(second)
    if [v.name for v in inputs_1] != [v.name for v in inputs_2] or _known(first) != _known(second):
        return False
    outputs_1, outputs_2 = _outputs(first), _outputs(second)
    return len(outputs_1) == len(outputs_2) and bool(
        equal_computations(outputs_1, outputs_2, inputs_1, inputs_2)
    )


def _inputs(model: Any) -> list[Any]:
    lengths = [v for _, v in sorted(model.dim_lengths.items()) if hasattr(v, "get_value")]
    return [*model.value_vars, *model.data_vars, *lengths]


def _outputs(model: Any) -> list[Any]:
    return [model.logp(), *model.replace_rvs_by_values(list(model.deterministics))]


def labelled(tree: xr.DataTree, model: Any) -> xr.DataTree:
    """Return draws with the labels of this model, whichever model of its graph was compiled."""
    labels = {name: list(values) for name, values in model.coords.items() if values is not None}
    found: xr.DataTree = tree.map_over_datasets(
        lambda group: group.assign_coords({n: v for n, v in labels.items() if n in group.dims})
    )
    return found


def _known(model: Any) -> tuple[Any, ...]:
    """Return what is compiled in beside the graph: shapes, lengths and the names of dims."""
    lengths = {name: None if v is None else len(v) for name, v in model.coords.items()}
    dims = {name: tuple(dims) for name, dims in model.named_vars_to_dims.items()}
    return [v.get_value(borrow=True).shape for v in model.data_vars], lengths, dims
