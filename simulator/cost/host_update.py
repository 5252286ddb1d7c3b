"""The update of optimizer states that live in host memory, on the CPU."""

from __future__ import annotations

from simulator.cost.collectives.select import CollectiveCosts
from simulator.cost.update import updated_bytes
from simulator.errors import Problem, UnsupportedError
from simulator.hardware.profile import Profile
from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.layout import ZERO_STATES
from simulator.parallel.program import StepProgram
from simulator.parallel.states import groups, sharded
from simulator.results import Category

_ONE_RANK = GroupShape(size=1, per_domain=1)


def split_update(
    program: StepProgram, stage: int, device: float, collectives: CollectiveCosts, profile: Profile
) -> dict[Category, float]:
    """Return the seconds of a stage's update of which `optimizer_offload` is done on the host.

    Gradients of that share go down and new parameters come back over the host link; between them
    the CPU reads and writes what the device would, at this rank's share of the node's memory
    bandwidth. The device takes `device` seconds for the rest. With `optimizer_overlap` the four
    run at the same time, bucket by bucket and over both directions of the link, and the slowest
    decides; without, they add up.

    Source: Ren et al. 2021, "ZeRO-Offload", sections 4.1 and 5; Megatron-LM
    core/optimizer/cpu_offloading/hybrid_optimizer.py (`overlap_cpu_optimizer_d2h_h2d`).
    """
    share, offload = program.layout.optimizer_offload, program.stack.offload
    parameters = share * sum(
        group.trained * sharded(program, group, ZERO_STATES) for group in groups(program, stage)
    )
    down, up = (
        collectives.plan(Collective.HOST_COPY, parameters * element, _ONE_RANK).seconds
        for element in (program.numbers.gradient, program.numbers.parameter)
    )
    rate = offload.host_efficiency * host_memory_share(profile)
    host = share * updated_bytes(program, stage) / rate
    if not offload.optimizer_overlap:
        return {Category.OPTIMIZER: device + host, Category.HOST_COMM: down + up}
    computes = max(device, host)
    exposed = max(0.0, max(down, up) - computes)
    return {Category.OPTIMIZER: computes, Category.HOST_COMM: exposed}


def host_memory_share(profile: Profile) -> float:
    """Return the host memory bandwidth of one accelerator's share of a node, bytes/s.

    Raises:
        UnsupportedError: the profile does not say.
    """
    bandwidth = profile.node.host.memory_bandwidth
    if bandwidth is None:
        raise UnsupportedError(
            Problem(
                where=profile.name,
                key="layout.optimizer_offload",
                rule="an update on the host needs the memory bandwidth of the node's CPUs",
                fix="set node.host.memory_bandwidth in the profile, or optimizer_offload = 0",
            )
        )
    share: float = bandwidth / profile.node.accelerators
    return share
