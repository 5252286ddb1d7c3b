"""Every framework whose launch files are written and read."""

from __future__ import annotations

from planner.launch.deepspeed import DEEPSPEED
from planner.launch.megatron_bridge import MEGATRON_BRIDGE
from planner.launch.megatron_lm import MEGATRON_LM
from planner.launch.nanotron import NANOTRON
from planner.launch.records import Tool, ToolEntry
from planner.launch.torchtitan import TORCHTITAN

TOOLS: dict[Tool, ToolEntry] = {
    Tool.MEGATRON_LM: MEGATRON_LM,
    Tool.MEGATRON_BRIDGE: MEGATRON_BRIDGE,
    Tool.TORCHTITAN: TORCHTITAN,
    Tool.DEEPSPEED: DEEPSPEED,
    Tool.NANOTRON: NANOTRON,
}
