"""Tables in Hydra's notation, as one word of a command line.

Source: Hydra 1.3, override grammar; Megatron-Bridge training/utils/omegaconf_utils.py
(`_apply_overrides`: a table with `_target_` is instantiated).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TARGET = "_target_"


def spell_table(fields: Mapping[str, Any]) -> str:
    """Return a table in Hydra's notation; types of torch are named, and not called.

    >>> spell_table({"bf16": True, "params_dtype": "torch.half"})
    '{bf16:true,params_dtype:{_target_:torch.half,_call_:false}}'
    """
    return "{" + ",".join(f"{name}:{_spelt(value)}" for name, value in fields.items()) + "}"


def _spelt(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if str(value).startswith("torch."):
        return f"{{{TARGET}:{value},_call_:false}}"
    return str(value)


def parse_table(text: str) -> dict[str, Any]:
    """Return the fields of a table in Hydra's notation; tables in it are left as they stand.

    >>> parse_table("{bf16: true, params_dtype: {_target_: torch.half}, fp8: null}")
    {'bf16': True, 'params_dtype': '{_target_: torch.half}', 'fp8': None}
    """
    inside, parts = 0, [""]
    for letter in text.strip()[1:-1]:
        inside += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and not inside:
            parts.append("")
        else:
            parts[-1] += letter
    pairs = (part.partition(":") for part in parts)
    return {name.strip(): parse_value(value) for name, _, value in pairs if name.strip()}


def parse_value(text: str) -> Any:
    """Return a switch or a missing value as such, all else as its text."""
    plain = text.strip().strip("'\"")
    return {"true": True, "false": False, "null": None}.get(plain.lower(), plain)
