"""When nothing is said, and what is said instead: one policy for whoever asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from geoeval.compare import load_policy
from geoeval.errors import ConfigError
from geoeval.selection import ABSTENTIONS, AbstentionPolicy, Suggestion, abstention
from geoeval.selection.policy import QualityRule

ROOT = Path(__file__).resolve().parents[2]
POLICY = load_policy(ROOT / "configs" / "abstention-prefill.toml")


@pytest.mark.parametrize("confidence", [0.0, 0.94, 1.0])
def test_a_poor_quality_abstains_however_confident(confidence):
    found = abstention(Suggestion(3, confidence), "poor", policy=POLICY, threshold=0.0)
    assert found.reason == "poor_quality"
    assert found.says == POLICY.copy.poor_quality


def test_each_reason_has_a_text_of_its_own():
    found = [
        abstention(None, "clear", policy=POLICY),
        abstention(Suggestion(0, 0.99), "poor", policy=POLICY),
        abstention(Suggestion(0, 0.1), "clear", policy=POLICY),
    ]
    assert tuple(one.reason for one in found) == ABSTENTIONS
    assert len({one.says for one in found}) == 3


def test_the_floor_and_the_threshold_are_inclusive_and_both_hold():
    assert abstention(Suggestion(0, 0.6), "clear", policy=POLICY) is None
    assert abstention(Suggestion(0, 0.5999), "clear", policy=POLICY).reason == "low_confidence"
    assert abstention(Suggestion(0, 0.6), "clear", policy=POLICY, threshold=0.61).reason == "low_confidence"
    assert abstention(Suggestion(0, 0.5), "clear", policy=POLICY, threshold=0.1).reason == "low_confidence"
    assert abstention(Suggestion(0, 0.61), "clear", policy=POLICY, threshold=0.61) is None


def test_without_a_policy_there_is_no_hidden_limit():
    assert abstention(Suggestion(0, 0.0), "poor") is None
    assert abstention(Suggestion(0, 0.0), None, policy=AbstentionPolicy(name="open")) is None
    assert abstention(None).says == ""


def test_an_unknown_level_abstains_where_an_answer_arrives_live():
    assert abstention(Suggestion(0, 1.0), "Clear", policy=POLICY).reason == "poor_quality"
    strict = AbstentionPolicy(name="p", quality=QualityRule(accepted=("clear",), required=True))
    assert abstention(Suggestion(0, 1.0), None, policy=strict).reason == "poor_quality"


GOOD = (ROOT / "configs" / "abstention-prefill.toml").read_text()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "prefill"', "", "name: is required"),
        ('name = "prefill"', 'name = " "', "name: must not be empty"),
        ("confidence_floor = 0.60", "confidence_floor = 60", "is it a percentage"),
        ("confidence_floor = 0.60", "confidence_flor = 0.60", "did you mean 'confidence_floor'"),
        ('accepted = ["clear", "usable"]', "accepted = []", "at least one accepted level"),
        ('refused = ["poor"]', 'refused = ["clear"]', "each level once"),
        ('no_suggestion = "No suggestion could be made. Please choose the type yourself."', "", "no_suggestion"),
        ("The photo is too unclear to suggest a type. Take another one, or choose the type yourself.", "", "own"),
        ("{ ece = 0.05 }", "{ ecee = 0.05 }", "did you mean 'ece'"),
        ("{ ece = 0.05 }", "{ ece = 5 }", r"release.at_most.ece: must lie in .* is it a percentage"),
        ("{ ece = 0.05 }", "{ ece = nan }", "ece"),
        ("{ ece = 0.05 }", "{ macro_f1 = 0.05 }", "more is better in 'macro_f1'"),
        ("macro_f1 = 0.80, ", "macro_f1 = 0.80, ece = 0.1, ", "less is better in 'ece'"),
        ("at_most = { ece = 0.05 }", 'gates = ["ece"]', "gates"),
        ("required = true", 'required = "yes"', "required"),
        ("[quality]", "[qualities]", "did you mean 'quality'"),
    ],
)
def test_a_policy_that_cannot_be_read_is_refused(old, new, says, tmp_path):
    assert old in GOOD
    path = tmp_path / "policy.toml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(ConfigError, match=says) as refused:
        load_policy(path)
    assert "policy.toml" in str(refused.value)


def test_the_hash_is_that_of_the_meaning(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text("# another comment\n" + GOOD.replace("0.60", "0.6"))
    assert load_policy(path).sha256 == POLICY.sha256
    path.write_text(GOOD.replace("0.60", "0.61"))
    assert load_policy(path).sha256 != POLICY.sha256


def test_the_prefill_policy_does_not_answer_without_a_quality():
    assert abstention(Suggestion(0, 1.0), None, policy=POLICY).reason == "poor_quality"
