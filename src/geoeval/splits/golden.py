"""Golden images of the perceptual hashes, and the codes that they must get."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

#: Codes of the golden images, in the eight orientations of each look, and their second codes.
GOLDEN: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "blobs": (
        (
            0x93936C6C6C727C64,
            0xC63939C639D829CE,
            0xC6C6393939272D39,
            0x936C6C936C8D7893,
            0xC03F3FC63A3BC4C0,
            0x95956A6C6F91916A,
            0x956A6A936E6C9195,
            0xC0C03F393BC6C43F,
        ),
        (
            0xF8F8F8F8F8F8F8F8,
            0xE0E0E0E0E0E0E0E0,
            0xE0E0E0E0E0E0E0E0,
            0xF8F8F8F8F8F8F8F8,
            0xC0C0C0C0C0C0C0C0,
            0xFCFCFCFCFCF8FCF8,
            0xF8FCF8FCFCFCFCFC,
            0xC0C0C0C0C0C0C0C0,
        ),
    ),
    "wedge": (
        (
            0xD57A3D154AA550F8,
            0x80D56AB71F0F2752,
            0x822B6A4A1FF0A7AD,
            0xD7813FE24A5A7207,
            0x85CB65F369B448B4,
            0xD06132592C5E3F5E,
            0xD09E32A62CA1BFE1,
            0x8734670C790BFA4B,
        ),
        (
            0x4A370FC7E1F8FEFF,
            0x0080E0701C071304,
            0x0413071C70E08000,
            0xFFFEF8E1C70F374A,
            0xDD6FF7BFDBEDFEF7,
            0x1080482402100904,
            0x0409100224488010,
            0xF7FEEDDBBFF76FDD,
        ),
    ),
    "fields": (
        (
            0xB307839A1D4AF4EC,
            0xE6ADD6314AE1A156,
            0xE652D6CE4A1EA1A9,
            0xB3F883641FB4F403,
            0xB307839A1D4BF4E8,
            0xE6ADD6314AE1A156,
            0xE652D6CE4A1EA1A9,
            0xB3F883641FB4F403,
            0xB9869BDA134AB4E4,
            0xEC2CCE714EE0E05E,
            0xECD2CE8E4E1FE0A0,
            0xB9789B241BB5B50A,
            0xF31583BAB4437CA8,
            0xA6BFD611E9E92910,
            0xA640D6EEE91629AE,
            0xF3EA8344BCBC7C04,
            0xF31583BAB4437CA8,
            0xA6BFD611E9E92910,
            0xA640D6EEE91629AE,
            0xF3EA8344BCBC7C04,
            0xB9869BDA134AB4E4,
            0xEC2CCE714EE0E05E,
            0xECD2CE8E4E1FE0A0,
            0xB9789B241BB5B50A,
        ),
        (
            0xD8D806003E1BD999,
            0x666427837F9FE4E4,
            0xE4E49F7F83276466,
            0x99D91B3E0006D8D8,
            0xD8D806013E1BD999,
            0x646427837B9FE4E4,
            0xE4E49F7B83276464,
            0x99D91B3E0106D8D8,
            0x79F686791E1A9998,
            0xE666A686609E9060,
            0x60909E6086A666E6,
            0x98991A1E7986F679,
            0xD8D800003F3BC9C9,
            0x6C6C2303FFFFE4E4,
            0xE4E4FFFF03236C6C,
            0xC9C93B3F0000D8D8,
            0xD8D800003F3BC9C9,
            0x6C6C2303FFFFE4E4,
            0xE4E4FFFF03236C6C,
            0xC9C93B3F0000D8D8,
            0x79F686F99E9A9998,
            0xE666A686609E9060,
            0x60909E6086A666E6,
            0x98999A9EF986F679,
        ),
    ),
}


def golden_images() -> dict[str, NDArray[np.uint16]]:
    """Images made by integer arithmetic alone, the same on every machine."""
    row, column = np.mgrid[0:96, 0:96].astype(np.int64)
    blobs = 20_000_000 // (400 + (row - 30) ** 2 + 2 * (column - 60) ** 2)
    wedge = np.where(row * 3 > column * 2 + 40, 2600, 300) + (row * column) // 9
    fields = 300 + 5100 * (((row // 17) * 7 + (column // 23) * 5 + (row // 17) * (column // 23) * 3) % 11) // 11
    return {
        "blobs": blobs.astype(np.uint16),
        "wedge": wedge.astype(np.uint16),
        "fields": np.stack([fields, fields.T + row]).astype(np.uint16),
    }
