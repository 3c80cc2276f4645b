"""Machine code of PyMC models: one graph is compiled once in a process.

Data and labels are swapped: neither is in the machine code.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Graph", "data_of", "graph_of", "labelled", "machine_code"]

_KEPT = 8
"""Graphs whose machine code is kept, those used last."""

_LARGEST = 1_000_000
"""Numbers in the data containers of a model that is kept: memory is not held for larger ones."""

_kept: list[tuple[Graph, Any]] = []


@dataclass(frozen=True, eq=False)
class Graph:
    """What of a PyMC model is compiled in: all but the values of its data containers."""

    model: Any
    inputs: tuple[Any, ...]
    known: tuple[Any, ...]  # shapes, lengths and the names of dims

    @cached_property
    def outputs(self) -> list[Any]:
        """The density and the deterministic variables, as the model was when first asked."""
        model = self.model
        return [model.logp(), *model.replace_rvs_by_values(list(model.deterministics))]

    def same_as(self, other: Graph) -> bool:
        """Return whether machine code of the one serves the other."""
        from pytensor.graph.basic import equal_computations

        if [v.name for v in self.inputs] != [v.name for v in other.inputs]:
            return False
        if self.known != other.known or len(self.outputs) != len(other.outputs):
            return False
        return bool(
            equal_computations(self.outputs, other.outputs, [*self.inputs], [*other.inputs])
        )


def graph_of(model: Any) -> Graph:
    """Return what of a PyMC model is compiled in."""
    lengths = [v for _, v in sorted(model.dim_lengths.items()) if hasattr(v, "get_value")]
    return Graph(model, (*model.value_vars, *model.data_vars, *lengths), _known(model))


def data_of(model: Any) -> dict[str, Any]:
    """Return the current values of the model's data containers."""
    return {v.name: v.get_value() for v in model.data_vars}


def machine_code(graph: Graph) -> Any:
    """Return the model as nutpie samples it, compiled only if no model with its graph was before.

    Its draws have the labels of the model that was compiled: see `labelled`.

    Parameters
    ----------
    graph : Graph
        Of a model with continuous variables only.
    """
    import nutpie

    for place, (known, code) in enumerate(_kept):
        if known.same_as(graph):
            _kept.append(_kept.pop(place))
            used = {variable.name for variable in code.shared_var_keys}
            data = {name: value for name, value in data_of(graph.model).items() if name in used}
            return code.with_data(**data)
    _ = graph.outputs  # as they are compiled, whatever becomes of the model
    code = nutpie.compile_pymc_model(graph.model)
    if sum(value.size for value in data_of(graph.model).values()) <= _LARGEST:
        _kept.append((graph, code))
        del _kept[:-_KEPT]
    return code


def labelled(tree: xr.DataTree, model: Any) -> xr.DataTree:
    """Return draws with the labels of this model, whichever model of its graph was compiled."""
    labels = {name: list(values) for name, values in model.coords.items() if values is not None}
    found: xr.DataTree = tree.map_over_datasets(
        lambda group: group.assign_coords({n: v for n, v in labels.items() if n in group.dims})
    )
    return found


def _known(model: Any) -> tuple[Any, ...]:
    """Return what is compiled in beside inputs and outputs."""
    lengths = {name: None if v is None else len(v) for name, v in model.coords.items()}
    dims = {name: tuple(dims) for name, dims in model.named_vars_to_dims.items()}
    return [v.get_value(borrow=True).shape for v in model.data_vars], lengths, dims
