# SPDX-License-Identifier: BSD-3-Clause
"""Reading what benchmarks print: {bytes: microseconds}; a barrier's key is 0."""
import re

from launch import Failure


def parse(text):
    """The latencies in the output of an OSU-style benchmark, or of gloo's (its medians)."""
    if "size (B)" in text:
        latencies = parse_gloo(text)
    else:
        latencies = parse_osu(text)
    if not latencies:
        raise Failure("no latencies in this output; OSU-style and gloo's are understood:\n" + text[-1000:])
    return latencies


def parse_osu(text):
    """The "Avg Latency(us)" column. Contents found wrong are a failure."""
    latencies = {}
    column = None
    for line in text.splitlines():
        if "Latency(us)" in line:
            column = 1 if "Size" in line else 0
        elif column is not None and re.match(r"\s*\d", line):
            fields = line.split()
            if "Fail" in fields:
                raise Failure("validation failed: " + line)
            latencies[int(fields[0]) if column else 0] = float(fields[column])
    return latencies


def parse_gloo(text):
    """The "p50" column, in us, or in ns with --nanos."""
    latencies = {}
    scale = None
    for line in text.splitlines():
        unit = re.search(r"p50 \((us|ns)\)", line)
        if unit:
            scale = {"us": 1.0, "ns": 1e-3}[unit[1]]
        elif scale and re.match(r"\s*\d+\s+\d+\s+\d+", line):
            fields = line.split()
            latencies[int(fields[0])] = scale * float(fields[3])
    return latencies


# As the table that SLUICE_STATS=1 prints names them, where it differs from the benchmarks' names.
STATISTICS_NAMES = {"bcast": "broadcast", "reduce_scatter_block": "reduce_scatter"}


def carried_calls(text, collective):
    """{(algorithm, transport): calls} for a collective, in the table that SLUICE_STATS=1 prints."""
    name = STATISTICS_NAMES.get(collective, collective)
    row = re.compile(rf"\b{name}\s+(\S+)\s+(\S+)\s+(\d+)\s+\S+\s+[\d.]+\s+[\d.]+\s*$")
    calls = {}
    for line in text.splitlines():
        found = row.search(line)
        if found and int(found[3]):
            key = (found[1], found[2])
            calls[key] = calls.get(key, 0) + int(found[3])
    return calls


UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_bytes(text):
    found = re.fullmatch(r"(\d+)([kmg]?)", text.strip().lower())
    if not found:
        raise ValueError(f"'{text}' is not a number of bytes such as 4, 64k or 4m")
    return int(found[1]) * UNITS[found[2]]


def parse_sizes(text):
    """MIN:MAX[:FACTOR], or sizes with commas -> [bytes]."""
    if "," in text:
        return sorted(map(parse_bytes, text.split(",")))
    parts = text.split(":")
    if len(parts) not in (2, 3):
        raise ValueError(f"'{text}' is not MIN:MAX or MIN:MAX:FACTOR, such as 4:4m:4")
    low, high = parse_bytes(parts[0]), parse_bytes(parts[1])
    factor = parse_bytes(parts[2]) if len(parts) == 3 else 2
    if not 0 < low <= high or factor < 2:
        raise ValueError(f"'{text}': MIN must be from 1 to MAX, FACTOR at least 2")
    sizes = []
    while low <= high:
        sizes.append(low)
        low *= factor
    return sizes
