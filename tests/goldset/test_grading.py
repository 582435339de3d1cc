"""Graders: a label letter by letter; a statement only where the source says it."""

from __future__ import annotations

import pytest

from geoeval.goldset.grading import grounding, label_match, tokens

SOURCE = (
    "The bridge over the Lys is closed. The ford has 3.50 m of water and is not open. "
    "The school lies north of the river; it has 1,200 pupils."
)


@pytest.mark.parametrize(
    ("output", "grounded"),
    [
        ("The bridge over the Lys is closed.", True),
        ("the BRIDGE over the lys, is closed", True),
        ("The bridge is closed.", True),
        ("The ford is closed.", False),  # both words stand in the source, in two sentences
        ("The bridge is not closed.", False),  # negation
        ("The road over the Lys is closed.", False),  # one word of three is another
        ("The old bridge over the Lys is closed.", False),  # a word was added
        ("The ford has 3.5 m of water and is not open.", True),
        ("The ford has 3.6 m of water and is not open.", False),
        ("The ford has 3.50 m of water and is open.", False),
        ("The river lies north of the school.", False),  # the same words in another order
        ("The school has 1200 pupils.", False),  # 'school' and 'pupils' stand in two sentences
        ("It has 1200 pupils.", True),
        ("", False),
        ("...", False),
        (None, False),
        ([], False),
        ({"name": "Lys", "depth_m": 3.5, "pupils": 1200}, True),
        ({"name": "Lys", "depth_m": None}, True),
        ({"depth_m": None}, False),
        ({"name": "Leie"}, False),
        ({"name": "bridge Lys"}, False),  # a value must stand there word by word
        ({"closed": True}, False),
        ({"inner": ["The ford is closed."]}, False),
        (["The bridge is closed.", "It has 1200 pupils."], True),
        (["The bridge is closed.", "The ford is closed."], False),
        ({"pupils": 1}, False),  # not the beginning of 1,200
        ({"pupils": -1200}, False),
    ],
)
def test_statements_must_stand_in_the_source(output, grounded):
    assert grounding(output, SOURCE).correct is grounded


def test_what_was_not_found_is_named():
    found = grounding("The bridge is closed. The ford is closed. The mill is old.", SOURCE)
    assert found.statements == 3
    assert found.ungrounded == ("The ford is closed.", "The mill is old.")


@pytest.mark.parametrize(
    ("expect", "output", "right"),
    [
        ("water", "water", True),
        ("water", " water\n", True),
        ("water", "Water", False),
        ("water", {"label": "water"}, True),
        ("keep", {"decision": "keep"}, True),
        ("water", {"label": "built", "decision": "water"}, False),
        ("4", 4, True),
        ("1", True, False),
        ("4", 4.0, False),
        ("water", None, False),
        ("water", ["water"], False),
        (None, None, False),
    ],
)
def test_a_label_is_right_letter_by_letter(expect, output, right):
    assert label_match(expect, output) is right


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("007", "#7"),
        ("1,200.50", "#1200.5"),
        ("3,5", "#3.5"),
        ("-0.0", "#0"),
        ("−4", "#-4"),
        ("1.2.3", "#1.2.3"),
        ("12345678901234567890123456789012345678", "#12345678901234567890123456789012345678"),
    ],
)
def test_a_number_has_one_spelling(text, number):
    assert tokens(text) == (number,)
