"""Which tasks cannot meet another one, told from what is known of all streams so far."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import accumulate

from simulator.engine.lanes import Lane
from simulator.schedule.tasks import NO_TASK, TaskGraph

Key = tuple[int, int]
"""A work, and the first of the replicas that do it together."""


class Lookahead:
    """Knows how early each stream can start its next task that shares anything.

    What tasks share are links, and GPUs where compute and communication slow each other. No task
    takes less than it does alone. So a stream starts its next one no earlier than when that which
    is known of it, and of the streams that the task waits for, has ended and all that is to be done
    before has taken as long as alone. A task that, alone, is over by then meets none: later ones of
    the others start later, and earlier ones had to pass the same test.
    """

    def __init__(
        self,
        graph: TaskGraph,
        lanes: Sequence[Lane],
        shared: Mapping[Key, Collection[Hashable]],
        sizes: Sequence[int],
        ends: Sequence[Sequence[float]],
    ) -> None:
        """`shared` is what each work uses that others use too; of `sizes` replicas at each task.

        `ends` of tasks, [replica][task], are infinite as long as they are not known.
        """
        self.graph, self.lanes, self.sizes, self.ends = graph, lanes, sizes, ends
        self.before = {lane: list(accumulate(lane.alone, initial=0.0)) for lane in lanes}
        """Seconds that all tasks of a stream before each place take alone."""
        self.next_shared = {lane: _next_shared(lane) for lane in lanes}
        """The place of the first task of a stream that may share anything, at or after each."""
        self.streams = len(lanes) // len(ends)
        self.found = {
            task: (number, place)
            for number, lane in enumerate(lanes[: self.streams])
            for place, task in enumerate(lane.tasks)
        }
        """The stream of each task, by its number among those of its replica, and its place there.
        """
        self.rivals = self._rivals(shared)

    def meets_none(self, lanes: Sequence[Lane], start: float) -> bool:
        """Return whether the task that some streams are about to start surely meets no other."""
        lane = lanes[0]
        rivals = self.rivals[self.graph.work[lane.tasks[lane.place]], lane.replica]
        if rivals is None:
            return False
        end = start + lane.alone[lane.place]
        return all(self._earliest_shared(rival) >= end for rival in rivals)

    def _earliest_shared(self, lane: Lane) -> float:
        """Return before which moment a stream starts no task that shares anything, seconds.

        Those whose ends are known do not count.
        """
        place = self.next_shared[lane][lane.place]
        if place == len(lane.tasks):
            return math.inf
        task, before = lane.tasks[place], self.before[lane]
        earliest = lane.free + before[place] - before[lane.place]
        for needed in (self.graph.first[task], self.graph.second[task]):
            if needed != NO_TASK:
                earliest = max(earliest, self._earliest_end(lane.replica, needed))
        return earliest

    def _earliest_end(self, replica: int, task: int) -> float:
        end = self.ends[replica][task]
        if end < math.inf:
            return end
        number, place = self.found[task]
        lane = self.lanes[replica * self.streams + number]
        before = self.before[lane]
        return lane.free + before[place + 1] - before[lane.place]

    def _rivals(
        self, shared: Mapping[Key, Collection[Hashable]]
    ) -> dict[Key, tuple[Lane, ...] | None]:
        """Return of each work the other streams that use any of what it shares.

        None where it loads classes of links of a fabric, which most streams do: to ask them all
        takes longer than to play.
        """
        owners: dict[Key, list[Lane]] = {key: [] for key in shared}
        uses: dict[Lane, set[Hashable]] = {}
        neighbours: dict[int, list[Lane]] = {}
        for lane in self.lanes:
            own = self._keys(lane) & shared.keys()
            uses[lane] = {thing for key in own for thing in shared[key]}
            neighbours.setdefault(lane.row, []).append(lane)
            for key in own:
                owners[key].append(lane)
        return {
            key: None
            if any(isinstance(thing, int) for thing in used)
            # What is not a link of a fabric belongs to one stage: who uses it, is there or meets
            # one that is.
            else tuple(
                lane
                for owner in owners[key]
                for lane in neighbours[owner.row]
                if lane is not owner and not uses[lane].isdisjoint(used)
            )
            for key, used in shared.items()
        }

    def _keys(self, lane: Lane) -> set[Key]:
        replica, sizes, work = lane.replica, self.sizes, self.graph.work
        return {(work[task], replica - replica % sizes[task]) for task in lane.tasks}


def _next_shared(lane: Lane) -> list[int]:
    place = len(lane.tasks)
    found = [place]
    for number in reversed(range(len(lane.tasks))):
        place = number if lane.delays[number] is None else place
        found.append(place)
    return found[::-1]
