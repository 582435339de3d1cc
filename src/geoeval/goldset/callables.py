"""A callable by name: ``module:callable``, the module importable from the working folder, or ``file.py:callable``."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from geoeval.errors import ConfigError, GeoevalError, nearest_spelling
from geoeval.evidence.canonical import file_digest


@dataclass(frozen=True, slots=True)
class Named:
    """A callable, its name without any path, and the SHA-256 of the file that it is written in."""

    name: str
    call: Callable[..., Any]
    sha256: str


class _WithoutCache(SourceFileLoader):
    """Leaves no compiled file beside the source."""

    def set_data(self, path: Any, data: Any, *, _mode: int = 0o666) -> None:
        """Write nothing."""


def named_callable(text: str, what: str) -> Named:
    """Find a callable; a class is called once, without arguments, and its instance taken.

    Parameters
    ----------
    text
        ``module:callable`` or ``path/file.py:callable``; dots lead into attributes.
    what
        What it is for, in messages: ``"runner"`` or ``"judge"``.

    Raises
    ------
    ConfigError
        Where the module cannot be imported, or holds no such callable.

    Examples
    --------
    >>> named_callable("json:dumps", "runner").call({})
    '{}'
    >>> named_callable("json:dump_s", "runner")
    Traceback (most recent call last):
    geoeval.errors.ConfigError: runner 'json:dump_s': module 'json' has no 'dump_s'; did you mean 'dumps'?
    """
    home, colon, attribute = text.rpartition(":")
    if not colon or not home or not attribute:
        raise ConfigError(f"{what} {text!r}: expected module:callable or file.py:callable, such as assistant:answer")
    module = _module(home, f"{what} {text!r}")
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            known = [name for name in vars(module) if not name.startswith("_")]
            raise ConfigError(
                f"{what} {text!r}: module {module.__name__!r} has no {attribute!r}; {nearest_spelling(part, known)}"
            )
        found = getattr(found, part)
    if inspect.isclass(found):
        found = _instance(found, f"{what} {text!r}")
    if not callable(found):
        raise ConfigError(f"{what} {text!r}: expected a callable, found {type(found).__name__}")
    source = getattr(module, "__file__", None)
    if source is None:
        raise ConfigError(f"{what} {text!r}: the module has no file, so it cannot be hashed; give one that has")
    return Named(f"{module.__name__}:{attribute}", found, file_digest(Path(source)))


def _instance(found: type, where: str) -> Any:
    try:
        return found()
    except Exception as error:
        raise ConfigError(f"{where}: the class cannot be called without arguments ({error!r})") from error


def _module(home: str, where: str) -> ModuleType:
    if home.endswith(".py"):
        path = Path(home)
        if not path.is_file():
            raise ConfigError(f"{where}: no such file: {path.name!r}; check the path")
        loader = _WithoutCache(path.stem, str(path))
        spec = spec_from_loader(path.stem, loader)
        assert spec is not None
        module = module_from_spec(spec)

        def load() -> ModuleType:
            loader.exec_module(module)
            return module

        return _imported(load, where)
    here = str(Path.cwd())
    # The installed command, unlike `python -m`, does not look into the working folder by itself.
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    return _imported(lambda: importlib.import_module(home), where)


def _imported(load: Callable[[], ModuleType], where: str) -> ModuleType:
    try:
        return load()
    except GeoevalError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{where}: cannot be imported ({type(error).__name__}: {error}); run from the folder that holds it"
        ) from error
