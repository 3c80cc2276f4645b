"""Draws that did not converge, taken on request, mark all that rests on them."""

import pytest

import bayesfair as bf
from bayesfair import examples
from bayesfair.base.notices import Notice, notices_to_json

READS = ("theta",)


def build(history):
    """Two arms whose posterior has modes that no chain leaves."""
    import numpy as np
    import pymc as pm

    seen = ~np.isnan(history.reward)
    with pm.Model(coords={"arm": list(history.arms)}) as model:
        z = pm.Normal("z", 0, 20, dims="arm")
        pm.Potential("modes", -8 * (((z / 8) ** 2 - 1) ** 2).sum())
        theta = pm.Deterministic("theta", pm.math.sigmoid(z / 8), dims="arm")
        pm.Bernoulli("reward", theta[history.arm[seen]], observed=history.reward[seen].astype(int))
    return model


@pytest.mark.statistical
def test_unconverged_draws_mark_text_json_tree_page_and_verdict(tmp_path):
    log = bf.read_history(examples.path("ecmo"))
    options = {"model": build, "draws": 400, "seed": 1}
    # chains that start in either mode stay there: R-hat is far above its limit
    with pytest.raises(bf.ConvergenceError) as refused:
        bf.audit(log, **options, sampler={"cores": 1})
    assert refused.value.kind == "unconverged"
    audit = bf.audit(log, **options, sampler={"cores": 1, "allow_unconverged": True})
    assert not audit.converged and audit.objective_verdict == "undetermined"
    assert audit.verdict in ("undetermined", audit.subjective_verdict)
    numbers = audit.to_dict()
    assert numbers["objective"]["converged"] is False
    (said,) = [found for found in numbers["findings"] if found["kind"] == "unconverged"]
    assert "R-hat" in said["text"] and said["text"] in numbers["notices"]
    assert "the draws did not converge" in str(audit)
    assert audit.fitted.attrs["converged"] == 0
    assert "unconverged" in audit.tree.attrs["bayesfair_audit"]
    bf.write_report(audit, tmp_path / "a.html")
    assert "did not converge" in (tmp_path / "a.html").read_text(encoding="utf-8")
    audit.save(tmp_path / "a.nc")
    assert not bf.load_audit(tmp_path / "a.nc").converged
    # a fit alone has the same graph, and is refused with its draws
    with pytest.raises(bf.ConvergenceError) as refused:
        bf.fit(log, **options, cores=1)
    assert "test_unconverged.build" in str(refused.value)
    assert refused.value.tree["posterior"]["theta"].sizes["arm"] == 2
    tree = bf.fit(log, **options, cores=1, allow_unconverged=True)
    assert tree.attrs["rhat_max"] > 1.01
    assert tree.attrs["prior"] == "as written in test_unconverged.build"
    # the draws are kept: the question about the prior samples nothing and needs no model again
    assert audit.prior_sensitivity().verdicts


def test_draws_of_converged_fits_are_not_marked():
    audit = bf.audit(bf.read_history(examples.path("ecmo")), seed=1)
    assert audit.converged and audit.to_dict()["objective"]["converged"] is True


def test_few_divergences_stand_beside_the_verdict_that_they_leave():
    log = bf.read_history(examples.path("ecmo"))
    tree = bf.fit(log, seed=1)
    plain = bf.audit(log, fit=tree, seed=1)
    said = Notice("3 draws.", kind="divergences", column="model", n=3)
    few = tree.copy()
    few.attrs["notices"] = notices_to_json([said])
    marked = bf.audit(log, fit=few, seed=1)
    assert marked.objective_verdict == plain.objective_verdict and marked.converged
    assert "3 divergent draws" in str(marked) and "divergent" not in str(plain)
