"""Standard streams that never cost a verdict: closed ones, readers that leave early, and narrow encodings.

An exit code says what was decided, so it must not depend on whether somebody reads all that is printed.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import Any, TextIO

#: How systems say that nobody reads a pipe any more.
_NOBODY_READS = (errno.EPIPE, errno.EINVAL) if os.name == "nt" else (errno.EPIPE,)


class Patient(io.RawIOBase):
    """A stream that swallows what is written after its reader has left (``| head -1``).

    Examples
    --------
    >>> stream = Patient(io.BytesIO())
    >>> stream.write(b"abc")
    3
    """

    def __init__(self, raw: Any) -> None:
        super().__init__()
        self._raw = raw
        self._alone = False

    def writable(self) -> bool:
        """Always."""
        return True

    def fileno(self) -> int:
        """That of the stream behind."""
        return int(self._raw.fileno())

    def isatty(self) -> bool:
        """Whether the stream behind is a terminal."""
        return bool(self._raw.isatty())

    def write(self, data: Any, /) -> int | None:
        """Write, or pretend to where nobody reads."""
        if self._alone:
            return len(data)
        try:
            written: int | None = self._raw.write(data)
        except OSError as error:
            # Said once: what is still in the buffer is not tried again while the program ends.
            self._alone = True
            if error.errno not in _NOBODY_READS:
                raise
            return len(data)
        return written


def steady(stream: TextIO | None) -> TextIO:
    """A stream to print on, whatever the caller did to it.

    Closed (``>&-``) becomes the null device; characters that the encoding lacks are written as escapes.
    """
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    if not isinstance(raw, io.RawIOBase):
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(Patient(raw)),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.isatty(),
    )


def steady_streams() -> None:
    """Make standard output and standard error steady."""
    sys.stdout, sys.stderr = steady(sys.stdout), steady(sys.stderr)
