"""A check: what is compared, what is not and why, which points count as unseen, the limits."""

from __future__ import annotations

import pytest

from calibrate.check import Check, ErrorLimits, broken_limits, check_records
from calibrate.check_table import check_table
from calibrate.point_groups import UnpredictedError, group_of
from calibrate.points import (
    AttentionPoint,
    CollectivePoint,
    Direction,
    HostCopyPoint,
    InterferencePoint,
    KernelSumPoint,
    Launch,
    LaunchPoint,
    LayerPart,
    LayerPoint,
    Point,
    SoakPoint,
    Timing,
)
from calibrate.predict import predict
from calibrate.predict_steps import model_of
from calibrate.rates import line_rate, rate_of
from calibrate.records import Record, Status
from calibrate.used_points import digest_of
from simulator.hardware.accelerator import Dtype
from simulator.hardware.profile import Profile, load_profile
from simulator.hardware.software_constants import KernelClass, SoftwareConstants
from simulator.parallel.groups import Collective, GroupShape
from simulator.workload.load import load_model
from tests.calibrate.measured import all_reduce, copy, gemm, record, rejected, step

ATTENTION = AttentionPoint(dtype=Dtype.BF16, batch=1, seq=4096, heads=32, kv_heads=8, head_dim=128)


@pytest.fixture(name="h100", scope="module")
def _h100() -> Profile:
    return load_profile("dgx-h100")


def with_software(profile: Profile, **constants: object) -> Profile:
    software = SoftwareConstants.model_validate({"stack": "pytorch-eager", **constants})
    known = profile.constants.model_copy(update={"software": software})
    return profile.model_copy(update={"constants": known})


def fitted_on(profile: Profile, *points: Point) -> Profile:
    first, *rest = profile.constants.fit
    seen = first.model_copy(update={"used": tuple(digest_of(point) for point in points)})
    known = profile.constants.model_copy(update={"fit": (seen, *rest)})
    return profile.model_copy(update={"constants": known})


def measured_as(profile: Profile, point: Point, factor: float = 1.0) -> Record:
    """Return a record whose time is `factor` x the forecast."""
    return record(point, predict(record(point), profile).seconds * factor)


@pytest.mark.parametrize(
    "point",
    [
        gemm(),
        ATTENTION,
        ATTENTION.model_copy(update={"backward": True}),
        copy(2**26),
        HostCopyPoint(direction=Direction.TO_HOST, bytes=1e9),
        all_reduce(2**26),
        all_reduce(2**26, ranks=16, nodes=2),
        step(),
    ],
    ids=lambda point: point.what,
)
def test_a_point_measured_at_twice_its_forecast_is_half_off(h100: Profile, point: Point) -> None:
    (checked,) = check_records([measured_as(h100, point, 2)], h100).points
    assert checked.pair is not None
    assert checked.pair.signed_error == pytest.approx(-0.5)


def test_a_large_product_runs_near_its_nominal_time(h100: Profile) -> None:
    # 2 x 8192^3 FLOP at 989.4 TFLOP/s are 1.11 ms; sustained products reach 60 to 90 % of it.
    point = gemm(8192, 8192, 8192).model_copy(update={"sustained": True})
    assert 1.11e-3 / 0.9 < predict(record(point), h100).seconds < 1.11e-3 / 0.6


@pytest.mark.parametrize(
    ("point", "reason"),
    [
        (gemm().model_copy(update={"dtype": Dtype.INT8}), "no peak or no constants for int8"),
        (SoakPoint(dtype=Dtype.BF16, duration=60.0), "has no forecast"),
        (KernelSumPoint(kernel="gemm", step=0), "which shapes"),
        (LaunchPoint(launch=Launch.KERNEL), "no constants of the software"),
        (all_reduce(1, 8).model_copy(update={"timing": Timing.ISOLATED}), "device time"),
        (all_reduce(1, 9, 2), "9 ranks do not divide over 2 nodes"),
        (step("no-such-model"), "neither a shipped model"),
        (step(layers=2).model_copy(update={"bucket_bytes": 1.0, "model": "x.toml"}), "x.toml"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_a_point_without_a_forecast_says_why(h100: Profile, point: Point, reason: str) -> None:
    (checked,) = check_records([record(point)], h100).points
    assert reason in checked.reason
    assert checked.predicted is None


def test_rejected_and_noisy_points_are_listed_and_not_compared(h100: Profile) -> None:
    noisy = record(gemm(), status=Status.NOISY)
    check = check_records([rejected(all_reduce(8), "faster than light"), noisy], h100)
    assert [point.reason for point in check.points] == ["rejected: faster than light", "noisy"]
    assert (check.total.records, check.total.skipped, check.total.statistics) == (2, 2, None)


def test_points_of_the_fit_are_told_from_unseen_ones(h100: Profile) -> None:
    seen, unseen = measured_as(h100, gemm(), 1.0), measured_as(h100, copy(2**26), 1 / 1.5)
    total = check_records([seen, unseen], fitted_on(h100, gemm())).total
    assert (total.used, total.statistics and total.statistics.count) == (1, 2)
    assert total.held_out is not None
    assert (total.held_out.count, total.held_out.median) == (1, pytest.approx(0.5))


def test_a_profile_that_does_not_list_its_points_has_nothing_held_out(h100: Profile) -> None:
    check = check_records([measured_as(h100, gemm(), 2.0)], h100)
    assert (check.knows_its_fit, check.total.held_out) == (False, None)
    assert len(broken_limits(check, ErrorLimits(worst=0.4))) == 1


def test_the_noise_of_a_family_is_the_median_spread(h100: Profile) -> None:
    records = [
        record(gemm(m), predict(record(gemm(m)), h100).seconds, spread=spread)
        for m, spread in ((256, 0.01), (512, 0.03), (1024, 0.2))
    ]
    assert check_records(records, h100).total.noise == 0.03


def test_an_empty_folder_has_nothing_to_say(h100: Profile) -> None:
    check = check_records([], h100)
    assert (check.points, check.families, check.total.statistics) == ((), (), None)


def checked(profile: Profile, *factors: float) -> Check:
    points = [measured_as(profile, gemm(2**i), f) for i, f in enumerate(factors, 8)]
    return check_records(points, profile)


@pytest.mark.parametrize(
    ("limits", "broken"),
    [
        (ErrorLimits(), []),
        (ErrorLimits(median=0.101, worst=0.21), []),
        (ErrorLimits(median=0.09), ["median"]),
        (ErrorLimits(worst=0.19), ["worst"]),
        (ErrorLimits(median=0.01, worst=0.01), ["median", "worst"]),
    ],
)
def test_a_broken_limit_is_named(h100: Profile, limits: ErrorLimits, broken: list[str]) -> None:
    # Signed errors of 0, +10 % and -20 %: the median is 10 %, the worst 20 %.
    check = checked(h100, 1.0, 1 / 1.1, 1 / 0.8)
    assert [words.partition(" ")[0] for words in broken_limits(check, limits)] == broken


def test_limits_hold_for_unseen_points_alone(h100: Profile) -> None:
    bad, good = measured_as(h100, gemm(), 3.0), measured_as(h100, copy(2**26))
    check = check_records([bad, good], fitted_on(h100, gemm()))
    assert broken_limits(check, ErrorLimits(worst=0.01)) == []


def test_no_limit_is_kept_where_nothing_is_compared(h100: Profile) -> None:
    check = check_records([rejected(gemm(), "impossible")], h100)
    assert len(broken_limits(check, ErrorLimits(median=1.0))) == 1


def test_the_table_of_a_check_counts_what_it_lists(h100: Profile) -> None:
    table = check_table(checked(h100, 1.0, 2.0), [])
    (family,) = table["families"]
    assert (family["compared"], family["errors"]["worst"]) == (2, pytest.approx(-0.5))
    assert [point["signed_error"] for point in table["points"]] == pytest.approx([0.0, -0.5])


def test_measured_launches_are_what_the_profile_says(h100: Profile) -> None:
    profile = with_software(h100, cpu_launch="5 us")
    assert predict(record(LaunchPoint(launch=Launch.KERNEL)), profile).seconds == pytest.approx(
        5e-6
    )
    with pytest.raises(UnpredictedError, match="no launch time of a collective"):
        predict(record(LaunchPoint(launch=Launch.COLLECTIVE)), profile)


def test_a_kernel_beside_a_collective_is_slower_by_k(h100: Profile) -> None:
    point = InterferencePoint(
        kernel=KernelClass.GEMM, collective=Collective.ALL_REDUCE, ranks=2, bytes=1e6
    )
    values = {"compute_alone": 2e-3, "compute_beside": 2.6e-3}
    profile = with_software(h100, compute_slowdown={KernelClass.GEMM: 1.2})
    (found,) = check_records([record(point, 1.0, values=values)], profile).points
    assert (found.measured, found.predicted) == (2.6e-3, pytest.approx(2.4e-3))


def test_a_group_is_cut_by_nodes_and_domains(h100: Profile) -> None:
    gb200 = load_profile("gb200-nvl72")
    assert group_of(all_reduce(1, 16, 2), h100) == GroupShape(size=16, per_domain=8)
    assert group_of(all_reduce(1, 2, 2), h100) == GroupShape(size=2, per_domain=1)
    # 4 GPUs a node, 72 of them in one NVLink domain.
    assert group_of(all_reduce(1, 16, 4), gb200) == GroupShape(size=16, per_domain=16)


def test_a_model_is_cut_to_its_first_layers() -> None:
    whole = load_model("gpt-oss-20b").spec
    cut = model_of("gpt-oss-20b", 3)
    assert cut.layers() == whole.layers()[:3]
    assert model_of("gpt-oss-20b", whole.num_hidden_layers) == whole


def test_a_model_has_no_more_layers_than_it_has(h100: Profile) -> None:
    (found,) = check_records([record(step("llama3.2-1b", 17))], h100).points
    assert "at most num_hidden_layers 16" in found.reason


def test_larger_buckets_change_the_forecast_of_a_step(h100: Profile) -> None:
    job = step().job.model_copy(update={"stack": "megatron-core"})
    layout = step().layout.model_copy(update={"dp": 4})
    point = step().model_copy(update={"layout": layout, "job": job})
    large = point.model_copy(update={"bucket_bytes": 1e12})
    one, other = (predict(record(each), h100).seconds for each in (point, large))
    assert one < other


def test_memory_of_a_step_is_compared_where_it_was_measured(h100: Profile) -> None:
    (found,) = check_records([record(step(), values={"peak_allocated": 8e9})], h100).points
    assert found.memory is not None
    assert found.memory.measured == 8e9


@pytest.mark.parametrize("part", list(LayerPart))
def test_parts_of_a_layer_have_forecasts(h100: Profile, part: LayerPart) -> None:
    profile = with_software(h100, stack="torchtitan")
    point = LayerPoint(part=part, model="llama3.2-1b", micro_batch=1, seq=2048, dtype=Dtype.BF16)
    forward = predict(record(point), profile).seconds
    backward = predict(record(point.model_copy(update={"backward": True})), profile).seconds
    assert 0 < forward <= backward


def test_a_layer_cut_by_tensor_parallelism_is_faster_and_waits_for_nobody(h100: Profile) -> None:
    profile = with_software(h100, stack="torchtitan")
    whole = LayerPoint(
        part=LayerPart.LAYER, model="llama3.1-8b", micro_batch=1, seq=4096, dtype=Dtype.BF16
    )
    cut = whole.model_copy(update={"tp": 4})
    one, four = (predict(record(point), profile).seconds for point in (whole, cut))
    assert one / 4 < four < one / 2


def test_rates_are_counted_as_nccl_tests_counts_them(h100: Profile) -> None:
    # 1 GB all-reduced over 8 ranks in 10 ms: 100 GB/s x 2 x 7/8.
    rate = rate_of(all_reduce(1e9), 10e-3, h100)
    assert rate is not None
    assert (rate.value, rate.nominal) == (pytest.approx(175e9), 450e9)


def test_the_share_of_the_peak_of_a_product(h100: Profile) -> None:
    # 2 x 4096^3 FLOP in 1 ms are 137 TFLOP/s of 989.4.
    rate = rate_of(gemm(), 1e-3, h100)
    assert rate is not None
    assert rate.share == pytest.approx(0.1389, rel=1e-3)


@pytest.mark.parametrize(
    ("collective", "ranks", "expected"),
    [
        # 8 cards of 50 GB/s a node; a ring crosses the border once.
        (Collective.ALL_REDUCE, 16, 400e9),
        (Collective.ALL_REDUCE, 2, 50e9),
        # Of 16 ranks each sends 8 of 15 others' parts over its own card: 50 x 15/8.
        (Collective.ALL_TO_ALL, 16, 50e9 * 15 / 8),
    ],
)
def test_the_line_rate_over_nodes(
    h100: Profile, collective: Collective, ranks: int, expected: float
) -> None:
    point = CollectivePoint(collective=collective, ranks=ranks, nodes=2, bytes=1e9)
    assert line_rate(point, h100) == pytest.approx(expected)
