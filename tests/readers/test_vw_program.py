"""What is read of Vowpal Wabbit's formats, held against the program itself."""

import json

import numpy as np
import pytest

from bayesfair.readers import read_history

vw = pytest.importorskip("vowpalwabbit", reason="no wheel of vowpalwabbit is installed")

N, K = 60, 3


def _parsed(program, text):
    """Return the place of the chosen action, its number, cost and probability, as VW reads them."""
    examples = program.parse(text)
    found = []
    for place, example in enumerate(examples):
        label = example.get_label(vw.LabelType.CONTEXTUAL_BANDIT)
        found += [(place, c) for c in label.costs if c.probability > 0]
    program.finish_example(examples)
    assert len(found) == 1
    place, cost = found[0]
    return place, cost.action, cost.cost, cost.probability


def _decided(program, rng):
    """Let the program explore: yield the law of each decision, the action drawn, its cost."""
    for _ in range(N):
        context = f"shared |u f:{rng.random():.3f}\n" + "\n".join(f"|a i{i}" for i in range(K))
        law = np.array(program.predict(context), dtype=float)
        law = law / law.sum()
        action = int(rng.choice(K, p=law))
        cost = -float(rng.random() < 0.2 + 0.3 * action)
        lines = context.split("\n")
        lines[1 + action] = f"0:{cost}:{law[action]:.6f} " + lines[1 + action]
        program.learn("\n".join(lines))
        yield "\n".join(lines), law, action, cost


def test_text_is_read_as_the_program_reads_it(tmp_path):
    rng = np.random.default_rng(7)
    rule = vw.Workspace("--cb_explore_adf --epsilon 0.3 --quiet")
    blocks = [text for text, *_ in _decided(rule, rng)]
    path = tmp_path / "log.vw"
    path.write_text("\n\n".join(blocks) + "\n")
    log = read_history(path)
    program = vw.Workspace("--cb_explore_adf --quiet")
    for t, block in enumerate(blocks):
        place, _, cost, chance = _parsed(program, block)
        place -= 1  # the line of what is shared
        assert log.arms[log.arm[t]] == str(place + 1)
        assert log.reward[t] == pytest.approx(-cost, abs=1e-6)
        assert log.propensity[t] == pytest.approx(chance, abs=1e-6)


@pytest.mark.parametrize("line", ["1:2:0.4 | a c", "3:0.5:0.2 'tag | b", "2:-1:1e-1 tag| b:2"])
def test_lines_are_read_as_the_program_reads_them(tmp_path, line):
    program = vw.Workspace("--cb 4 --quiet")
    example = program.parse(line)
    (cost,) = example.get_label(vw.LabelType.CONTEXTUAL_BANDIT).costs
    program.finish_example(example)
    path = tmp_path / "log.vw"
    path.write_text(f"{line}\n4:0:0.5 | d\n")
    log = read_history(path)
    assert log.arms[log.arm[0]] == str(cost.action)
    assert log.reward[0] == pytest.approx(-cost.cost, abs=1e-6)
    assert log.propensity[0] == pytest.approx(cost.probability, abs=1e-6)


def test_dsjson_is_read_as_the_program_reads_it(tmp_path):
    rng = np.random.default_rng(8)
    rule = vw.Workspace("--cb_explore_adf --epsilon 0.3 --quiet")
    lines = []
    for t, (_, law, action, cost) in enumerate(_decided(rule, rng)):
        order = [action, *(i for i in range(K) if i != action)]
        lines.append(json.dumps({
            "_label_cost": cost, "_label_probability": law[action], "_label_Action": action + 1,
            "_labelIndex": action, "EventId": f"e{t}", "a": [i + 1 for i in order],
            "p": [law[i] for i in order],
            "c": {"u": {"f": 1.0}, "_multi": [{"a": {"i": i}} for i in range(K)]},
        }))  # fmt: skip
    path = tmp_path / "log.dsjson"
    path.write_text("\n".join(lines) + "\n")
    log = read_history(path)
    program = vw.Workspace("--cb_explore_adf --dsjson --quiet")
    for t, line in enumerate(lines):
        place, _, cost, chance = _parsed(program, line)
        assert log.arms[log.arm[t]] == str(place)  # behind what is shared
        assert log.reward[t] == pytest.approx(-cost, abs=1e-6)
        assert log.selection_probability[t, log.arm[t]] == pytest.approx(chance, abs=1e-6)
