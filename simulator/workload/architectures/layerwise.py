"""Sizes given layer by layer, as the commonest and what differs from them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from simulator.workload.architectures.entry import Config, Fields

_OVERRIDDEN = ("num_attention_heads", "num_key_value_heads", "intermediate_size")


def common_and_overrides(rows: list[Fields], config: Config) -> Fields:
    """Return the commonest sizes as the model's own, and what differs as overrides."""
    common = {}
    for key in _OVERRIDDEN:
        values = Counter(row[key] for row in rows if key in row)
        if values:
            common[key] = values.most_common(1)[0][0]
    common.setdefault("num_key_value_heads", config.get("num_attention_heads"))
    common.setdefault("intermediate_size", config.get("intermediate_size") or 1)
    different: dict[tuple[tuple[str, Any], ...], list[int]] = {}
    for index, row in enumerate(rows):
        changed = {key: value for key, value in row.items() if value != common.get(key, "normal")}
        if changed:
            different.setdefault(tuple(changed.items()), []).append(index)
    overrides = [{"layers": layers, **dict(row)} for row, layers in different.items()]
    return {**common, "layer_overrides": overrides}
