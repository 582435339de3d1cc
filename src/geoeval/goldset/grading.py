"""Graders: deterministic, without a model. A label must be the expected one; statements must stand in the source.

Label         the output, or its ``label`` or ``decision``, equals what is expected, letter by letter; blanks around do
              not count.
Grounding     every statement must be found in the source; no statement at all is no success. A text is split into
              sentences, a list into its items, an object into its values (null says nothing; true and false are never
              found). A value must stand in the source word by word. A sentence or item may also be shortened: it may
              leave words out and add none, so its words must stand in *one* sentence of the source in the same order,
              and both must agree on negation. Case, punctuation, common words and the way a number is written
              (1,200 or 1200; 3.50 or 3.5) do not count.
Not seen      synonyms, other units, sums of numbers, statements drawn from two sentences: they count as not grounded,
              so the grader is strict, never lenient, on rewording. What it cannot see is a word that was left out and
              mattered.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from geoeval.goldset.cases import Case, GraderName, label_text

_TOKEN = re.compile(r"(?P<number>(?<![\w.,])-?\d+(?:[.,]\d+)*)|[^\W\d_]+(?:'[^\W\d_]+)*|[^\W_]+|[%°]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|[\n;]+")
_THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")
_DECIMAL = re.compile(r"-?\d+([.,]\d+)?")
_COMMON_WORDS = (
    "a an the of in on at to and is are was were be been being by for with from as it its this that these those there "
    "has have had"
)
_COMMON = frozenset(_COMMON_WORDS.split())
_NEGATIONS = frozenset({"not", "no", "never", "none", "neither", "nor", "without", "cannot"})


@dataclass(frozen=True, slots=True)
class Grade:
    """Whether an accepted result is right, and which statements were not found in the source."""

    correct: bool
    statements: int = 0
    ungrounded: tuple[str, ...] = ()


def grade(case: Case, output: Any, grader: GraderName) -> Grade:
    """Grade the output of an accepted result; what was deferred is never graded.

    Examples
    --------
    >>> case = Case("a", "classify", "tile 7", {}, "water", None, "gold.jsonl, line 1")
    >>> grade(case, {"label": "water"}, "label").correct
    True
    """
    if grader == "label":
        return Grade(label_match(case.expect, output))
    return grounding(output, case.source)


def label_match(expect: str | None, output: Any) -> bool:
    """True where the output is the expected label.

    Examples
    --------
    >>> label_match("3", 3), label_match("water", "Water"), label_match("keep", {"decision": "keep"})
    (True, False, True)
    """
    given = output
    if isinstance(output, Mapping):
        given = output.get("label", output.get("decision"))
    label = label_text(given)
    return label is not None and expect is not None and label == expect


def grounding(output: Any, source: str) -> Grade:
    """Which statements of an output stand in its source.

    Examples
    --------
    >>> source = "The bridge over the Lys is closed. The ford has 3.50 m of water."
    >>> grounding({"river": "Lys", "depth_m": 3.5}, source).correct
    True
    >>> grounding("The ford is closed. The bridge is closed.", source).ungrounded
    ('The ford is closed.',)
    >>> grounding("", source)
    Grade(correct=False, statements=0, ungrounded=())
    """
    told = tuple(statements(output))
    words = tokens(source)
    sentences = [tokens(one) for one in _SENTENCE.split(source)]
    lost = tuple(
        text
        for text, whole in told
        if not (_stands_in(tokens(text), words) or (not whole and _told_by(text, sentences)))
    )
    return Grade(bool(told) and not lost, len(told), lost)


def statements(output: Any) -> Iterator[tuple[str, bool]]:
    """Statements of an output, and whether each must stand in the source word by word.

    Examples
    --------
    >>> list(statements("One road. Two fords."))
    [('One road.', False), ('Two fords.', False)]
    >>> list(statements({"name": "Lys", "width_m": 12, "depth_m": None}))
    [('Lys', True), ('12', True)]
    """
    if isinstance(output, Mapping):
        for value in output.values():
            yield from ((text, True) for text, _ in statements(value))
    elif isinstance(output, list | tuple):
        for value in output:
            yield from statements(value) if isinstance(value, list | tuple | Mapping) else _one(value)
    elif isinstance(output, str):
        yield from ((one.strip(), False) for one in _SENTENCE.split(output) if tokens(one))
    else:
        yield from _one(output)


def _one(value: Any) -> Iterator[tuple[str, bool]]:
    if isinstance(value, str):
        if value.strip():
            yield value.strip(), False
    elif value is not None:
        yield str(value).lower() if isinstance(value, bool) else f"{value}", True


def tokens(text: str) -> tuple[str, ...]:
    """Words and numbers of a text in one spelling.

    Examples
    --------
    >>> tokens("The Lys: 1,200 m, 3.50 %")
    ('the', 'lys', '#1200', 'm', '#3.5', '%')
    """
    plain = unicodedata.normalize("NFKC", text).casefold().replace("−", "-").replace("’", "'")
    return tuple(
        _number(found.group()) if found.lastgroup == "number" else found.group() for found in _TOKEN.finditer(plain)
    )


def _number(text: str) -> str:
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    elif _DECIMAL.fullmatch(text):
        text = text.replace(",", ".")
    else:
        return f"#{text}"
    sign = "-" if text.startswith("-") else ""
    whole, _, part = text.removeprefix("-").partition(".")
    value = ".".join(filter(None, (whole.lstrip("0") or "0", part.rstrip("0"))))
    return f"#{sign if value != '0' else ''}{value}"


def _stands_in(words: Sequence[str], source: Sequence[str]) -> bool:
    """True where the words follow each other in the source."""
    size = len(words)
    return size > 0 and any(tuple(source[at : at + size]) == tuple(words) for at in range(len(source) - size + 1))


def _told_by(text: str, sentences: Sequence[Sequence[str]]) -> bool:
    """True where one sentence of the source holds all words that count, in order, and the same negation."""
    said = tokens(text)
    words = [one for one in said if one not in _COMMON]
    return bool(words) and any(
        _is_negated(said) == _is_negated(sentence) and _in_order(words, sentence) for sentence in sentences
    )


def _is_negated(words: Sequence[str]) -> bool:
    return sum(one in _NEGATIONS or one.endswith("n't") for one in words) % 2 == 1


def _in_order(words: Sequence[str], sentence: Sequence[str]) -> bool:
    """True where the sentence holds the words in their order, whatever stands between them."""
    rest = iter(sentence)
    return all(word in rest for word in words)
