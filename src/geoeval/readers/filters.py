"""Attribute filters such as ``method = 'A' AND (year >= 2016 OR kind IN ('x', 'y'))``: parsed, never run as code.

Grammar     ``=`` ``==`` ``<>`` ``!=`` ``<`` ``<=`` ``>`` ``>=``, ``AND`` ``OR`` ``NOT``, ``[NOT] IN (...)``,
            ``IS [NOT] NULL``, ``[NOT] LIKE 'a%'`` (``ILIKE`` ignores case), ``[NOT] BETWEEN a AND b``, parentheses.
Names       bare, or in double quotes or backticks; texts stand in single quotes.
Nulls       as in SQL: a comparison with null is neither true nor false, so neither it nor its ``NOT`` keeps the row.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geoeval.errors import ColumnError, ConfigError, nearest_spelling
from geoeval.readers.columns import as_numbers, as_text

Mask = NDArray[np.bool_]

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?![\w])|\.\d+(?:[eE][+-]?\d+)?(?![\w]))
    | (?P<text>'(?:[^']|'')*')
    | (?P<name>"(?:[^"]|"")*"|`[^`]*`)
    | (?P<op><=|>=|<>|!=|==|=|<|>)
    | (?P<mark>[(),+-])
    | (?P<word>[^\W\d][\w.:/$]*)
    )""",
    re.VERBOSE,
)

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "==": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_WORDS = frozenset({"and", "or", "not", "in", "is", "null", "like", "ilike", "between", "true", "false"})


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Truth(NamedTuple):
    """Where a condition is true and where it is false; neither where it meets a null."""

    yes: Mask
    no: Mask


@dataclass(frozen=True, slots=True)
class _Value:
    """A column or a literal."""

    column: str | None
    literal: Any = None


def matches(frame: pd.DataFrame, where: str, name: str = "table") -> Mask:
    """Which rows a filter keeps.

    Parameters
    ----------
    frame
        The attribute table.
    where
        The filter.
    name
        File name for messages.

    Returns
    -------
    ndarray
        True for the rows that are kept.

    Raises
    ------
    ConfigError
        The filter cannot be understood.
    ColumnError
        It names a column that is not there, or compares one with a value of another kind.

    Examples
    --------
    >>> frame = pd.DataFrame({"kind": ["a", "b", None], "n": [1, 2, 3]})
    >>> matches(frame, "kind = 'a' OR n >= 3").tolist()
    [True, False, True]
    >>> matches(frame, "NOT kind == 'a'").tolist()
    [False, True, False]
    """
    parser = _Parser(_tokens(where), frame, where, name)
    try:
        truth = parser.disjunction()
    except RecursionError as error:
        raise ConfigError(f"filter {where[:60]!r}…: its parentheses are nested too deeply; take some out") from error
    parser.end()
    return truth.yes


def _tokens(where: str) -> list[_Token]:
    tokens = []
    at = 0
    text = where.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ConfigError(
                f"filter {where!r}: cannot read {text[at:].lstrip()[:20]!r} at character {at + 1}; "
                "texts stand in single quotes, column names bare or in double quotes"
            )
        kind = str(found.lastgroup)
        tokens.append(_Token(kind, found.group(kind), found.start(kind)))
        at = found.end()
    return tokens


@dataclass(slots=True)
class _Parser:
    """Recursive descent; each rule returns the truth of its part over all rows."""

    tokens: list[_Token]
    frame: pd.DataFrame
    where: str
    name: str
    at: int = 0
    numbers: dict[str, Any] = field(default_factory=dict)

    def peek(self, *words: str) -> bool:
        """True where the next token is one of these words or marks."""
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        return token is not None and token.kind in ("word", "mark", "op") and token.text.lower() in words

    def accept(self, *words: str) -> bool:
        """Step over the next token where it is one of these."""
        if self.peek(*words):
            self.at += 1
            return True
        return False

    def expect(self, word: str) -> None:
        """Step over this token, or refuse."""
        if not self.accept(word):
            self.refuse(f"expected {word.upper()!r}")

    def refuse(self, says: str) -> None:
        """Say what was expected and what stood there."""
        found = repr(self.tokens[self.at].text) if self.at < len(self.tokens) else "the end"
        at = self.tokens[self.at].at + 1 if self.at < len(self.tokens) else len(self.where) + 1
        raise ConfigError(
            f"filter {self.where!r}: {says}, found {found} at character {at}; "
            "a filter looks like kind = 'barn' AND (year >= 2016 OR note IS NULL)"
        )

    def end(self) -> None:
        """Refuse whatever is left over."""
        if self.at < len(self.tokens):
            hint = "write a < b AND b < c" if self.peek(*_COMPARE) else "expected AND, OR or the end"
            self.refuse(hint)

    def disjunction(self) -> _Truth:
        """``a OR b``."""
        truth = self.conjunction()
        while self.accept("or"):
            other = self.conjunction()
            truth = _Truth(truth.yes | other.yes, truth.no & other.no)
        return truth

    def conjunction(self) -> _Truth:
        """``a AND b``."""
        truth = self.negation()
        while self.accept("and"):
            other = self.negation()
            truth = _Truth(truth.yes & other.yes, truth.no | other.no)
        return truth

    def negation(self) -> _Truth:
        """``NOT a``, a condition, or a filter in parentheses."""
        if self.accept("not"):
            truth = self.negation()
            return _Truth(truth.no, truth.yes)
        if self.accept("("):
            truth = self.disjunction()
            self.expect(")")
            return truth
        return self.condition()

    def condition(self) -> _Truth:
        """One comparison."""
        left = self.value()
        if self.accept("is"):
            wanted = not self.accept("not")
            self.expect("null")
            null = self.null_of(left)
            return _Truth(null, ~null) if wanted else _Truth(~null, null)
        if self.peek(*_COMPARE):
            token = self.tokens[self.at]
            self.at += 1
            return self.compare(left, token.text, self.value())
        negative = self.accept("not")
        truth = self.member(left)
        return _Truth(truth.no, truth.yes) if negative else truth

    def member(self, left: _Value) -> _Truth:
        """``IN``, ``BETWEEN`` or ``LIKE``."""
        if self.accept("in"):
            self.expect("(")
            truth = self.compare(left, "=", self.value())
            while self.accept(","):
                other = self.compare(left, "=", self.value())
                truth = _Truth(truth.yes | other.yes, truth.no & other.no)
            self.expect(")")
            return truth
        if self.accept("between"):
            low = self.compare(left, ">=", self.value())
            self.expect("and")
            high = self.compare(left, "<=", self.value())
            return _Truth(low.yes & high.yes, low.no | high.no)
        if self.peek("like", "ilike"):
            fold = self.tokens[self.at].text.lower() == "ilike"
            self.at += 1
            return self.like(left, self.value(), fold)
        self.refuse("expected a comparison such as =, <, IN, IS NULL or LIKE")
        raise AssertionError

    def value(self) -> _Value:
        """A column, a number, a text, TRUE or FALSE."""
        sign = -1 if self.accept("-") else 1
        self.accept("+")
        if self.at >= len(self.tokens):
            self.refuse("expected a column or a value")
        token = self.tokens[self.at]
        if token.kind == "number":
            self.at += 1
            return _Value(None, sign * float(token.text))
        if token.kind == "text":
            self.at += 1
            return _Value(None, token.text[1:-1].replace("''", "'"))
        if token.kind == "word" and token.text.lower() in ("true", "false"):
            self.at += 1
            return _Value(None, token.text.lower() == "true")
        if token.kind == "name" or (token.kind == "word" and token.text.lower() not in _WORDS):
            self.at += 1
            return _Value(self.column(token))
        self.refuse("expected a column or a value")
        raise AssertionError

    def column(self, token: _Token) -> str:
        """The column that a name means; its case matters only where two columns differ in nothing else."""
        word = token.text if token.kind == "word" else token.text[1:-1].replace('""', '"')
        known = [str(column) for column in self.frame.columns]
        if word in known:
            return word
        same = [column for column in known if column.lower() == word.lower()]
        if len(same) == 1:
            return same[0]
        # A pair of quotes of the other kind, or none at all, is the usual slip.
        hint = "" if token.text.startswith("`") else f" (a text stands in single quotes: '{word}')"
        raise ColumnError(
            f"{self.name}: filter {self.where!r} names column {word!r}, which is not there{hint}; "
            f"{nearest_spelling(word, known)}"
        )

    def null_of(self, value: _Value) -> Mask:
        """Where a value is null."""
        if value.column is None:
            return np.zeros(len(self.frame), dtype=bool)
        return self.frame[value.column].isna().to_numpy(dtype=bool)

    def numeric(self, value: _Value) -> Any:
        """A value as numbers, None where it is none."""
        if value.column is None:
            if isinstance(value.literal, str):
                try:
                    return float(value.literal)
                except ValueError:
                    return None
            return float(value.literal)
        if value.column not in self.numbers:
            self.numbers[value.column] = as_numbers(self.frame[value.column])
        return self.numbers[value.column]

    def compare(self, left: _Value, op: str, right: _Value) -> _Truth:
        """Compare as numbers where both sides are numbers, else as text."""
        act = _COMPARE[op]
        a, b = self.numeric(left), self.numeric(right)
        if a is not None and b is not None:
            result = np.broadcast_to(act(a, b), len(self.frame))
        else:
            self._same_kind(left, op, right)
            result = self._compare_text(left, act, right)
        known = ~(self.null_of(left) | self.null_of(right))
        return _Truth(known & result, known & ~result)

    def _same_kind(self, left: _Value, op: str, right: _Value) -> None:
        for column, literal in ((left, right), (right, left)):
            if column.column is None or literal.column is not None:
                continue
            if isinstance(literal.literal, float) or (
                isinstance(literal.literal, str) and self.numeric(column) is not None
            ):
                kind = "text" if isinstance(literal.literal, float) else "numbers"
                mend = "put the value in single quotes" if kind == "text" else "give a number"
                if kind == "numbers" and self.frame[column.column].isna().all():
                    continue
                raise ColumnError(
                    f"{self.name}: filter {self.where!r} compares column {column.column!r}, which holds {kind}, "
                    f"by {op} with {literal.literal!r}; {mend}"
                )

    def _compare_text(self, left: _Value, act: Callable[[Any, Any], Any], right: _Value) -> Mask:
        out = np.zeros(len(self.frame), dtype=bool)
        known = ~(self.null_of(left) | self.null_of(right))
        a, b = self.text(left)[known], self.text(right)[known]
        out[known] = np.asarray(act(a, b), dtype=bool) if known.any() else False
        return out

    def text(self, value: _Value) -> Any:
        """A value as texts, one a row, '' for null."""
        if value.column is None:
            return np.full(len(self.frame), str(value.literal), dtype=object)
        text = as_text(self.frame[value.column])
        text[pd.isna(text)] = ""
        return text

    def like(self, left: _Value, pattern: _Value, fold: bool) -> _Truth:
        """``%`` stands for any run of characters, ``_`` for one."""
        if not isinstance(pattern.literal, str):
            self.refuse("expected a pattern in single quotes")
        parts = ("".join({"%": ".*", "_": "."}.get(char, re.escape(char)) for char in str(pattern.literal)), re.DOTALL)
        form = re.compile(parts[0], parts[1] | (re.IGNORECASE if fold else 0))
        known = ~self.null_of(left)
        hit = np.fromiter((form.fullmatch(text) is not None for text in self.text(left)), bool, len(self.frame))
        return _Truth(known & hit, known & ~hit)
