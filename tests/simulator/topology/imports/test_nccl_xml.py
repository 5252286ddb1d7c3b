"""NCCL's topology XML: PCIe as NCCL takes it, NVLinks, C2C, cards, several hosts, hostile files."""

from __future__ import annotations

import pytest

from simulator.errors import InputError
from simulator.topology.graph import DeviceKind
from simulator.topology.imports.sockets import cpu_name
from tests.simulator.topology.imports.samples import (
    GB,
    capacity,
    options,
    profile,
    read,
    unit_of,
    way,
)

CPU = 'arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1"'
GEN4 = 'link_speed="16.0 GT/s PCIe" link_width="16"'


def system(*cpus: str) -> str:
    """Return a document."""
    return f'<system version="1">\n{"".join(cpus)}</system>\n'


def cpu(inside: str, numa: int = 0, more: str = "") -> str:
    """Return a NUMA node."""
    return f'<cpu numaid="{numa}" affinity="ff" {CPU} {more}>\n{inside}</cpu>\n'


def gpu(number: int, inside: str = "", link: str = GEN4, sm: int = 80) -> str:
    """Return an accelerator at bus 0<number>."""
    return (
        f'<pci busid="0000:0{number}:00.0" class="0x030200" {link}>'
        f'<gpu dev="{number}" sm="{sm}" rank="{number}" gdr="1">{inside}</gpu></pci>\n'
    )


def nic(bus: str, *nets: str, link: str = GEN4) -> str:
    """Return a card."""
    return f'<pci busid="{bus}" class="0x020700" {link}><nic>{"".join(nets)}</nic></pci>\n'


def net(name: str, dev: int, speed: int = 200000, more: str = "") -> str:
    """Return a port of a card."""
    return f'<net name="{name}" dev="{dev}" speed="{speed}" port="1" gdr="1" {more}/>'


def bridge(inside: str, bus: str = "0000:a0:00.0", link: str = GEN4, ids: str = "") -> str:
    """Return a PCIe switch."""
    return f'<pci busid="{bus}" class="0x060400" {link} {ids}>\n{inside}</pci>\n'


def nvlink(target: str, count: int, tclass: str = "0x030200") -> str:
    """Return NVLinks."""
    return f'<nvlink target="{target}" count="{count}" tclass="{tclass}"/>'


@pytest.mark.parametrize(
    ("link", "rate"),
    [
        ('link_speed="8 GT/s" link_width="16"', 12 * GB),
        ('link_speed="16 GT/s" link_width="16"', 24 * GB),
        ('link_speed="32.0 GT/s PCIe" link_width="8"', 24 * GB),
        ('link_speed="64.0 GT/s PCIe" link_width="16"', 96 * GB),
        ('link_speed="" link_width="0"', 12 * GB),
    ],
)
def test_pcie_has_what_nccl_takes_it_to_have(link: str, rate: float) -> None:
    unit = unit_of(system(cpu(gpu(0, link=link))))
    assert capacity(unit, "gpu0", "numa0") == rate


def test_links_that_do_not_say_their_speed_are_noted() -> None:
    notes = read(system(cpu(gpu(0, link='link_speed="" link_width="0"')))).notes
    assert "says no speed x 0; 8 GT/s x 16, as NCCL takes it" in str(notes[0])


def test_numa_nodes_are_as_far_apart_as_nccl_says() -> None:
    unit = unit_of(system(cpu(gpu(0)), cpu(gpu(1), 1)), options(sockets=None))
    assert capacity(unit, "numa0", "numa1") == 24 * GB


def test_all_nvswitches_are_one() -> None:
    links = "".join(
        nvlink(f"0000:f{n}:00.0", count, "0x068000") for n, count in enumerate((5, 4, 4, 5))
    )
    unit = unit_of(system(cpu(gpu(0, links, sm=90) + gpu(1, links, sm=90))))
    assert [capacity(unit, f"gpu{n}", "nvswitch") for n in range(2)] == [450 * GB] * 2


def test_links_of_a_mesh_count_once_though_both_ends_name_them() -> None:
    pair = gpu(0, nvlink("0000:01:00.0", 4)) + gpu(1, nvlink("0000:00:00.0", 4))
    assert capacity(unit_of(system(cpu(pair))), "gpu0", "gpu1") == 4 * 25 * GB


def test_links_that_one_end_does_not_count_are_noted() -> None:
    found = read(system(cpu(gpu(0, nvlink("0000:01:00.0", 4)) + gpu(1))))
    assert found.unit is not None
    assert "gpu0 counts 4 links to gpu1, which counts 0 back" in str(found.notes[0])
    assert capacity(found.unit, "gpu0", "gpu1") == 100 * GB


def test_xgmi_links_divide_the_profiles_bandwidth() -> None:
    links = [
        "".join(f'<xgmi target="0000:0{m}:00.0" count="1"/>' for m in range(8) if m != n)
        for n in range(8)
    ]
    unit = unit_of(
        system(cpu("".join(gpu(n, links[n], sm=94) for n in range(8)))), options("mi300x-node")
    )
    assert {capacity(unit, "gpu3", f"gpu{n}") for n in range(8) if n != 3} == {64 * GB}


def test_chip_to_chip_links_are_added_to_pcie() -> None:
    unit = unit_of(system(cpu(gpu(0, '<c2c bw="44712" count="5"/>', sm=100))))
    assert capacity(unit, "gpu0", "numa0") == pytest.approx((5 * 44.712 + 24) * GB)


def test_ports_have_the_speed_of_the_file() -> None:
    unit = unit_of(system(cpu(gpu(0) + nic("0000:10:00.0", net("mlx5_0", 0, 400000)))))
    assert [(each.name, each.bandwidth) for each in unit.nics] == [("mlx5_0", 50 * GB)]


def test_two_ports_of_a_card_share_its_pcie_link() -> None:
    card = nic("0000:10:00.0", net("mlx5_0", 0), net("mlx5_1", 1, 100000))
    unit = unit_of(system(cpu(gpu(0) + card)))
    first, second = (way(unit, f"mlx5_{n}", "numa0") for n in range(2))
    assert first[1] == second[1]
    assert capacity(unit, first[1], "numa0") == 24 * GB


def test_cards_that_are_fused_into_another_one_are_left_out() -> None:
    card = nic("0000:10:00.0", net("mlx5_0", 0, more='net="0"'), net("fused", 1))
    assert [each.name for each in unit_of(system(cpu(gpu(0) + card))).nics] == ["fused"]


def test_a_gpu_uses_the_nic_below_its_own_switch() -> None:
    one = bridge(gpu(0) + nic("0000:10:00.0", net("b", 1)), "0000:a0:00.0")
    other = bridge(gpu(1) + nic("0000:11:00.0", net("a", 0)), "0000:a1:00.0")
    unit = unit_of(system(cpu(one + other)))
    assert ([each.name for each in unit.nics], unit.affinity) == (["a", "b"], ("b", "a"))


def test_accelerators_are_in_the_order_of_their_ranks() -> None:
    text = system(cpu(gpu(1) + gpu(0))).replace(
        'dev="1" sm="80" rank="1"', 'dev="1" sm="80" rank="5"'
    )
    assert unit_of(text).accelerators == ("gpu0", "gpu1")


def test_files_that_name_classes_only_take_nvlink_from_the_profile() -> None:
    text = system(
        cpu(
            '<pci busid="0001:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>\n'
            '<pci busid="0002:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>\n'
            '<pci busid="0101:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/>\n'
        )
    )
    found = read(text, options("dgx-a100-80gb"))
    assert found.unit is not None
    total = profile("dgx-a100-80gb").node.scale_up.bandwidth
    assert capacity(found.unit, "gpu1", "nvswitch") == total
    assert (len(found.unit.nics), "as dgx-a100-80gb says" in str(found.notes[-1])) == (1, True)


BROADCOM = 'vendor="0x1000" device="0xc010" subsystem_vendor="0x1000" subsystem_device="0xa096"'


def test_a_switch_that_shows_two_levels_is_one() -> None:
    lower = bridge(gpu(0), "0000:b0:00.0", ids=BROADCOM) + bridge(
        gpu(1), "0000:b1:00.0", ids=BROADCOM
    )
    unit = unit_of(system(cpu(bridge(lower, "0000:a0:00.0", ids=BROADCOM))))
    assert way(unit, "gpu0", "gpu1") == ["gpu0", "pcie-0000:a0:00.0", "gpu1"]


def test_other_switches_keep_their_levels() -> None:
    lower = bridge(gpu(0), "0000:b0:00.0") + bridge(gpu(1), "0000:b1:00.0")
    assert len(way(unit_of(system(cpu(bridge(lower)))), "gpu0", "gpu1")) == 5


def test_a_bridge_that_is_narrower_than_what_hangs_on_it_is_noted() -> None:
    text = system(cpu(bridge(gpu(0), link='link_speed="2.5 GT/s PCIe" link_width="1"')))
    assert "a virtual bridge may say what no hardware has" in str(read(text).notes[0])


def test_several_hosts_of_one_nvlink_domain_are_one_unit() -> None:
    switch = nvlink("fffffff:ff:ff.0", 18, "0x068000")
    hosts = [cpu(gpu(n, switch, sm=100), more=f'host_hash="0x{n}"') for n in range(2)]
    unit = unit_of(system(*hosts), options("gb200-nvl72"))
    assert unit.accelerators == ("host0/gpu0", "host1/gpu1")
    assert capacity(unit, "host1/gpu1", "nvswitch") == 900 * GB
    assert capacity(unit, "host0/numa0", "host1/numa0") == 0


def test_an_accelerator_without_the_links_of_the_others_is_noted() -> None:
    switch = nvlink("fffffff:ff:ff.0", 18, "0x068000")
    notes = read(system(cpu(gpu(0, switch, sm=90) + gpu(1, sm=90)))).notes
    assert "no NVLink leads to gpu1, but to the others" in str(notes[-1])


def test_links_that_are_not_the_profiles_are_noted() -> None:
    switch = nvlink("0000:f0:00.0", 12, "0x068000")
    notes = [str(note) for note in read(system(cpu(gpu(0, switch) + gpu(1, switch)))).notes]
    assert "gpu0 has links of 300 GB/s together, and dgx-h100 says 450" in notes


def test_a_document_inside_a_log_is_found_and_its_lines_are_the_logs() -> None:
    log = "NCCL INFO version\n\n" + system(cpu(gpu(0, link=""))) + "done\n"
    assert [note.line for note in read(log, options(None)).notes] == [5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<!DOCTYPE s [<!ENTITY a "b">]><system>&a;</system>', "declares a document type"),
        ('<!DOCTYPE s SYSTEM "file:///etc/passwd"><system/>', "declares a document type"),
        ("<system>&a;</system>", "not well-formed XML"),
        ('<graphs version="1"></graphs>', "NCCL_GRAPH_DUMP_FILE"),
        ("<html></html>", "the root element must be <system>"),
        ("<system><cpu></system>", "line 1: is not well-formed XML: mismatched tag"),
        (system(cpu(gpu(0)))[:-40], "not well-formed XML"),
        ("<system>" + "<pci>" * 300 + "</pci>" * 300 + "</system>", "256 deep"),
        ("<system></system>", "has no accelerator"),
        (system(cpu(gpu(0) + gpu(0))), "gpu0 is there already"),
        (system(cpu(gpu(0, nvlink("0000:77:00.0", 1)))), "no accelerator with this bus id"),
        (system(cpu(gpu(0, nvlink("0000:01:00.0", 1), sm=11) + gpu(1))), "how fast a link"),
        (system(cpu(gpu(0, '<c2c bw="x" count="5"/>'))), "bw must be a whole number"),
        (system(cpu('<pci busid="nonsense"/>')), "busid must be as in"),
        (system(cpu(gpu(0))).replace("AuthenticAMD", "Acme"), "no processor that NCCL knows"),
    ],
)
def test_a_document_that_is_no_topology_is_an_error(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(text, options(sockets=None))


def test_all_problems_of_a_document_are_shown_at_once() -> None:
    text = system(cpu('<pci busid="one"/>\n<pci busid="two"/>\n'))
    with pytest.raises(InputError) as caught:
        read(text)
    assert [problem.key for problem in caught.value.problems] == ["line 3", "line 4"]


def test_elements_that_are_not_understood_are_noted() -> None:
    notes = [str(note) for note in read(system(cpu(gpu(0)), "<quantum/>"), options(None)).notes]
    assert notes == ["line 5: <quantum> is not understood and left out"]


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        (
            {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": "6", "modelid": "85"},
            "Intel Skylake to Ice Lake",
        ),
        (
            {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": "6", "modelid": "143"},
            "Intel Sapphire Rapids",
        ),
        (
            {"arch": "x86_64", "vendor": "GenuineIntel", "familyid": "6", "modelid": "173"},
            "Intel Emerald Rapids and later",
        ),
        (
            {"arch": "x86_64", "vendor": "AuthenticAMD", "familyid": "143", "modelid": "49"},
            "AMD EPYC Zen 1 and 2",
        ),
        (
            {"arch": "x86_64", "vendor": "AuthenticAMD", "familyid": "175", "modelid": "1"},
            "AMD EPYC Zen 3 and 4",
        ),
        (
            {"arch": "x86_64", "vendor": "AuthenticAMD", "familyid": "26", "modelid": "2"},
            "AMD EPYC Zen 5",
        ),
        ({"arch": "arm64"}, "Arm"),
        ({"arch": "riscv"}, ""),
    ],
)
def test_processors_are_told_apart_as_in_nccl(attributes: dict[str, str], name: str) -> None:
    assert cpu_name(attributes) == name


def test_devices_of_all_kinds_are_there() -> None:
    text = system(cpu(bridge(gpu(0) + nic("0000:10:00.0", net("mlx5_0", 0)))))
    kinds = {name: str(kind) for name, kind in unit_of(text, options(None)).devices}
    assert kinds == {
        "numa0": DeviceKind.HOST,
        "pcie-0000:a0:00.0": DeviceKind.SWITCH,
        "gpu0": DeviceKind.ACCELERATOR,
        "mlx5_0": DeviceKind.NIC,
    }
