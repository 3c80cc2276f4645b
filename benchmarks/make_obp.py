"""What Open Bandit Pipeline makes and estimates: ``python benchmarks/make_obp.py ../shared/data``.

With obp 0.5.7, which asks for an older Python (``pip install --no-deps --ignore-requires-python
obp``, and pandas, scikit-learn, pyyaml, tqdm). It imports PyTorch for estimators that are not used
here: where there is none, a stand-in takes its place.
"""

import json
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

warnings.filterwarnings("ignore")
try:
    import torch  # noqa: F401
except ImportError:
    for name in ("torch", "torch.nn", "torch.nn.functional", "torch.optim", "torch.utils",
                 "torch.utils.data"):  # fmt: skip
        module = types.ModuleType(name)
        module.__getattr__ = lambda asked: type(asked, (), {})
        sys.modules[name] = module
        above, _, own = name.rpartition(".")
        if above:
            setattr(sys.modules[above], own, module)

from obp import ope  # noqa: E402
from obp.dataset import (  # noqa: E402
    SyntheticBanditDataset,
    linear_behavior_policy,
    logistic_reward_function,
)
from obp.version import __version__  # noqa: E402

LOGS = ("obd_random_men", "obd_bts_men")


def synthetic():
    made = SyntheticBanditDataset(
        n_actions=3, dim_context=2, reward_function=logistic_reward_function,
        behavior_policy_function=linear_behavior_policy, random_state=12345,
    ).obtain_batch_bandit_feedback(n_rounds=12)  # fmt: skip
    kept = ("n_rounds", "n_actions", "action", "position", "reward", "pscore", "pi_b")
    return {
        key: value.tolist() if isinstance(value, np.ndarray) else value
        for key, value in made.items() if key in kept
    }  # fmt: skip


def believed(arm, reward, k):
    """Beta(1/2, 1/2) means before each round."""
    wins, plays, rows = np.zeros(k), np.zeros(k), []
    for a, r in zip(arm, reward, strict=True):
        rows.append((wins + 0.5) / (plays + 1))
        wins[a] += r
        plays[a] += 1
    return np.array(rows)


def estimates(path):
    log = pd.read_csv(path).sort_values("timestamp", kind="stable")
    arm, reward = log.item_id.to_numpy(), log.click.to_numpy().astype(float)
    k, n = int(arm.max()) + 1, len(log)
    means = believed(arm, reward, k)[:, :, None]
    rules = {"uniform": np.ones(k), "rising": np.arange(1.0, k + 1)}
    found = {}
    for name, weights in rules.items():
        dist = np.tile((weights / weights.sum())[None, :, None], (n, 1, 1))
        given = {"reward": reward, "action": arm, "pscore": log.propensity_score.to_numpy(),
                 "position": np.zeros(n, int), "action_dist": dist}  # fmt: skip
        snips = ope.SelfNormalizedInverseProbabilityWeighting()
        found[name] = {
            "ips": ope.InverseProbabilityWeighting().estimate_policy_value(**given),
            "self_normalised": snips.estimate_policy_value(**given),
            "doubly_robust": ope.DoublyRobust().estimate_policy_value(
                **given, estimated_rewards_by_reg_model=means
            ),
        }  # fmt: skip
    return {"n": n, "k": k, **found}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    found = {
        "obp": __version__,
        "feedback": synthetic(),
        "estimates": {name: estimates(folder / f"{name}.csv") for name in LOGS},
    }
    (Path(__file__).parents[1] / "tests/reference/obp.json").write_text(json.dumps(found) + "\n")
