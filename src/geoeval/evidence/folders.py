"""A folder that is written whole or not at all."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A folder to write into, which takes its name once everything is there.

    After a failure nothing is left behind: neither the folder nor those above it that were made for it.

    Parameters
    ----------
    target
        The folder, which is not there yet.

    Raises
    ------
    OSError
        It cannot be made or renamed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with whole_folder(Path(home) / "new" / "run") as folder:
    ...         _ = (folder / "a.txt").write_text("a")
    ...     [path.name for path in (Path(home) / "new" / "run").iterdir()]
    ['a.txt']
    """
    home = target.parent
    made = [one for one in (home, *home.parents) if not one.exists()]
    partial = home / f".partial-{secrets.token_hex(8)}"
    done = False
    try:
        partial.mkdir(parents=True)
        yield partial
        partial.rename(target)
        done = True
    finally:
        if not done:
            shutil.rmtree(partial, ignore_errors=True)
            for folder in made:
                # What somebody else put there in the meantime stays.
                with contextlib.suppress(OSError):
                    folder.rmdir()
