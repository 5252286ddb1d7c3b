"""A plan says where the search ranks by estimates of a sounder cluster than it is."""

from __future__ import annotations

from planner import plan, to_json
from simulator.scenario import SearchFile
from simulator.topology.network_file import SlowRanks
from tests.planner.scenarios import gpt, scenario

SEARCH = SearchFile(tp=(1,), pp=(1,), micro_batch_size=(1,), zero_stage=(0,), top=1)


def test_a_plan_says_that_estimates_leave_out_slow_ranks() -> None:
    sound = scenario(gpt(4, 256), search=SEARCH)
    cluster = sound.file.cluster.model_copy(update={"slow": (SlowRanks(ranks=(3,), factor=1.5),)})
    slow = sound.model_copy(update={"file": sound.file.model_copy(update={"cluster": cluster})})
    told, untold = plan(slow), plan(sound)
    note = (
        "closed-form estimates leave out 1 slow rank; simulated steps have all of it, and the "
        "search ranks by estimates first"
    )
    assert (note in told.warnings, note in untold.warnings) == (True, False)
    assert note in to_json(told)
    assert told.layouts[0].step_time > untold.layouts[0].step_time
