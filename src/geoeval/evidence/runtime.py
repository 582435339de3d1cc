"""What ran: versions of the libraries that move numbers, and the facts of the platform that may."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from typing import Any

#: Libraries whose version may move a number.
PACKAGES = (
    "geopandas",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "pyogrio",
    "pyproj",
    "rasterio",
    "rfc8785",
    "scipy",
    "shapely",
)


def version() -> str:
    """The version of this package, ``unknown`` where it runs without being installed."""
    return _version("geoeval")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def runtime() -> dict[str, Any]:
    """Versions and platform facts for a manifest. No host name, no path, no time.

    Examples
    --------
    >>> runtime()["byte_order"] in ("little", "big")
    True
    """
    import pyogrio
    import pyproj
    import rasterio
    import shapely

    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "byte_order": sys.byteorder,
        "system": platform.system(),
        "machine": platform.machine().lower(),
        "packages": {"geoeval": version(), **{name: _version(name) for name in PACKAGES}},
        "libraries": {
            "geos": shapely.geos_version_string,
            "proj": pyproj.proj_version_str,
            "gdal_raster": rasterio.__gdal_version__,
            "gdal_vector": pyogrio.__gdal_version_string__,
        },
    }
