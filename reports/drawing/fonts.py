"""Fonts that can write all text of a figure."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from simulator.errors import InputError, Problem

_CJK = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")
_CJK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Microsoft YaHei",
    "PingFang SC",
    "SimHei",
)
"""Fonts with Chinese signs, of which the first that is installed is taken."""


def font_settings(text: str) -> dict[Any, Any]:
    """Return settings of matplotlib under which a text can be written.

    Raises:
        InputError: it has Chinese signs, and no font with them is installed.
    """
    if not _CJK.search(text):
        return {}
    from matplotlib import font_manager

    return {"font.family": ["DejaVu Sans", chinese_font(font_manager.get_font_names())]}


def chinese_font(installed: Collection[str]) -> str:
    """Return the name of an installed font with Chinese signs.

    Raises:
        InputError: there is none.
    """
    found = next((name for name in _CJK_FONTS if name in installed), None)
    if found is None:
        raise InputError(
            Problem(
                key="--figures",
                rule="Chinese text in PNG needs a font that has it, and none is installed",
                fix="install one (Debian, Ubuntu: fonts-wqy-zenhei), or --figure-format svg",
            )
        )
    return found
