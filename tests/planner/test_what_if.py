"""What if: changed machines and jobs, what would make another layout the best, what would fit."""

from __future__ import annotations

from typing import Any

import pytest

from planner import plan
from planner.changes import changed
from planner.explaining import explain
from planner.remedies import smallest
from planner.what_if import best_of, what_ifs
from planner.what_if_file import changes_of, what_if_table
from planner.worthwhile import wanted_of, worthwhile
from simulator.aims import WhatIfFile
from simulator.api import Forecaster
from simulator.errors import InputError
from simulator.files import parse_record
from simulator.hardware.profile import Profile, profile_names
from simulator.parallel.layout import Recompute
from simulator.scenario import Scenario, SearchFile
from simulator.workload.job import TrainingJob
from tests.fakes import changed as remade
from tests.planner.scenarios import gpt, machine, scenario
from tests.planner.test_mixed import two_generations


def small(*asked: WhatIfFile, nic_gbps: float = 10, **search: Any) -> Scenario:
    """Return a job on two nodes with slow NICs and few layouts."""
    table = {
        "tp": (1, 8),
        "pp": (1,),
        "micro_batch_size": (1,),
        "zero_stage": (1,),
        "recompute": (Recompute.NONE,),
        "sequence_parallel": (True,),
        **search,
    }
    found = scenario(
        gpt(2, 2048),
        nodes=2,
        job=TrainingJob(global_batch_size=16, seq_length=1024),
        profile=machine(nic_gbps=nic_gbps, memory="20 GiB"),
        search=SearchFile(**table),
    )
    return found.model_copy(update={"file": found.file.model_copy(update={"what_if": asked})})


def test_a_change_of_nothing_changes_nothing() -> None:
    given = small(WhatIfFile(name="nothing", change={"accelerator.power": "x2"}))
    base = best_of(given).layouts[0]
    found = what_ifs(given, base)[-1]
    assert (found.name, found.same.speedup, found.best.speedup) == ("nothing", 1.0, 1.0)
    assert found.best.layout == base.layout


def test_replanning_is_never_worse_than_the_same_layout() -> None:
    given = small()
    found = what_ifs(given, best_of(given).layouts[0])
    both = [each for each in found if each.same.layout is not None]
    assert len(both) >= 8
    assert all(each.best.speedup >= each.same.speedup * (1 - 1e-9) for each in both)


def test_a_changed_step_is_that_of_the_changed_scenario() -> None:
    given = small(WhatIfFile(name="fast", change={"node.nic.bandwidth": "x8"}))
    found = what_ifs(given, best_of(given).layouts[0])[-1]
    there = best_of(small(nic_gbps=80)).layouts[0]
    assert (found.best.layout, found.best.step_time) == (there.layout, there.step_time)


def test_a_change_that_names_what_is_not_there_is_refused_before_anything_runs() -> None:
    given = small(WhatIfFile(name="typo", change={"node.nic.bandwith": "x2"}))
    with pytest.raises(InputError, match=r"what_if 'typo': node\.nic\.bandwith"):
        explain(given)


def test_keys_with_dots_may_be_written_without_quotes() -> None:
    nested = {"name": "nic", "change": {"node": {"nic": {"bandwidth": "x2"}}}}
    found = parse_record(WhatIfFile, nested, "scenario.toml")
    assert found.change == {"node.nic.bandwidth": "x2"}


def test_every_next_machine_is_shipped_and_none_follows_itself() -> None:
    successor = what_if_table().successor
    names = {*profile_names()}
    assert names >= {*successor} | {*successor.values()}
    for name in successor:
        seen = {name}
        while (name := successor.get(name, "")) != "":
            assert name not in seen
            seen.add(name)


def test_shipped_changes_and_levers_name_keys_of_a_machine() -> None:
    given = small()
    asked = changes_of(given, what_if_table())
    assert [each.name for each in asked if changed(given, each.change) == given] == []
    assert all(changed(given, lever.at(2.0)) != given for lever in what_if_table().lever)


def test_a_lever_turns_the_choice_between_the_two_factors_it_names() -> None:
    given = small()
    best = best_of(given).layouts[0]
    other = {8: "tp=1", 1: "tp=8"}[best.layout.tp]
    found = worthwhile(given, best, wanted_of(other, "here"))
    assert found.found is not None
    assert found.found.step_time > best.step_time
    turned = [each for each in found.thresholds if each.factor is not None]
    assert turned
    for each in turned:
        assert each.factor is not None
        assert each.loses_at is not None
        wins, loses = (
            best_of(changed(given, dict.fromkeys(each.keys, f"x{factor!r}"))).layouts[0].layout.tp
            for factor in (each.factor, each.loses_at)
        )
        assert (wins, loses) == (found.found.layout.tp, best.layout.tp)


def test_a_kind_of_layouts_is_a_list_of_axes_and_values() -> None:
    assert wanted_of("tp=16, recompute=full", "") == {"tp": "16", "recompute": "full"}
    with pytest.raises(InputError) as caught:
        wanted_of("tpp=16,pp", "scenario.toml")
    assert [problem.found for problem in caught.value.problems] == ["tpp=16", "pp"]


def test_a_value_that_an_axis_cannot_have_is_refused_as_in_a_file() -> None:
    given = small()
    with pytest.raises(InputError, match=r"--layout-key: tp\.0: input should be a valid integer"):
        worthwhile(given, best_of(given).layouts[0], {"tp": "wide"})


def test_where_nothing_fits_each_remedy_says_whether_it_helps() -> None:
    given = scenario(gpt(8, 1024), profile=machine(memory="2 GiB"))
    search = SearchFile(tp=(1, 2), micro_batch_size=(1,), recompute=(Recompute.NONE,))
    file = given.file.model_copy(update={"search": search})
    answer = plan(given.model_copy(update={"file": file}))
    tried = {remedy.what: remedy for remedy in answer.remedies}
    assert {*answer.hints} <= {*tried}
    assert tried["memory capacity x2"].fits
    for remedy in answer.remedies:
        assert remedy.peak_memory is None or remedy.fits == (
            remedy.peak_memory <= answer.memory_limit * (2 if "x2" in remedy.what else 1)
        )


def test_the_nodes_named_are_the_first_doubling_on_which_anything_fits() -> None:
    search = SearchFile(tp=(1,), pp=(1,), micro_batch_size=(1,), recompute=(Recompute.FULL,))
    job = TrainingJob(global_batch_size=256, seq_length=1024)
    given = scenario(gpt(8, 1024), job=job, profile=machine(memory="3 GiB"), search=search)
    named = [each for each in plan(given).remedies if each.what.startswith("cluster.nodes")]
    if not named:
        pytest.fail("the case fits, so that nothing is tried")
    nodes = int(named[0].what.split("=")[1])
    fits = []
    for count in (1, 2, 4, 8, 16, 32, 64):
        at = smallest(changed(given, {"cluster.nodes": count}))
        fits.append(at is not None and at[0])
    assert (named[0].fits, nodes) == (any(fits), 2 ** fits.index(True) if any(fits) else 64)


def test_a_mixed_cluster_is_asked_about_with_the_machines_of_all_its_parts() -> None:
    table = {"tp": (8,), "pp": (2,), "micro_batch_size": (1,), "zero_stage": (1,)}
    asked = (
        WhatIfFile(name="nothing", change={"accelerator.power": "x2"}),
        WhatIfFile(name="memory", change={"accelerator.memory_bandwidth": "x4"}),
    )
    given = two_generations()
    file = given.file.model_copy(update={"search": SearchFile(**table), "what_if": asked})
    found = explain(given.model_copy(update={"file": file}))
    nothing, memory = found.what_ifs[-2:]
    parts = [quicker_memory(part.profile, 4.0) for part in given.parts]
    other = given.model_copy(update={"profile": parts[0], "others": tuple(parts[1:])})
    by_hand = Forecaster.of(other).simulate(found.plan.layouts[0].layout).step_time
    assert nothing.same.speedup == pytest.approx(1.0, rel=1e-12)
    assert memory.same.step_time == pytest.approx(by_hand, rel=1e-12)
    assert memory.same.speedup > 1.02
    assert found.sensitivities == ()


def quicker_memory(profile: Profile, factor: float) -> Profile:
    """Return a machine whose memory is so many times as fast."""
    bandwidth = profile.accelerator.memory_bandwidth * factor
    board = remade(profile.accelerator, memory_bandwidth=bandwidth)
    return remade(profile, machine=remade(profile.machine, accelerator=board))
