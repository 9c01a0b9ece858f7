# SPDX-License-Identifier: BSD-3-Clause
"""
Files of statistics, as sluice-statistics(5) describes them, and what they say of a job. Shares are of the time of all
ranks together, from their first collective to the end.
"""
import collections
import json
import os

from verdict import Verdict

SCHEMA = 1
PARTS = ("waiting", "moving", "rest", "unknown")


class Failure(Exception):
    """What the user is told in a line."""


def size_text(size):
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << shift:
            number = size / (1 << shift)
            return f"{number:.0f} {unit}" if number == int(number) else f"{number:.1f} {unit}"
    return f"{size} B"


class Site:
    """A call site: the calls of a communicator and collective of about one size, by whatever algorithm."""

    def __init__(self, first):
        self.communicator, self.group, self.size = first["communicator"], first["group"], first["size"]
        self.collective, self.least, self.most = first["collective"], first["least_bytes"], first["most_bytes"]
        self.calls = self.bytes = 0
        self.total = 0.0
        self.parts = dict.fromkeys(PARTS, 0.0)
        self.late = collections.Counter()  # seconds, by rank
        self.late_calls = collections.Counter()
        self.by_rank = collections.defaultdict(lambda: dict.fromkeys(PARTS, 0.0))
        self.ways = collections.Counter()  # seconds, by (algorithm, carrier)
        self.histogram = collections.Counter()  # calls, by the shortest time of a bucket

    def add(self, part):
        self.calls += part["calls"]
        self.bytes += part["bytes"]
        self.total += part["seconds"]["total"]
        add_seconds(self.parts, part["seconds"])
        for late in part["late"]:
            self.late[late["rank"]] += late["seconds"]
            self.late_calls[late["rank"]] += late["calls"]
        for share in part["ranks"]:
            add_seconds(self.by_rank[share["rank"]], share["seconds"])
        self.ways[part["algorithm"], part["carrier"]] += part["seconds"]["total"]
        for bucket in part["histogram"]:
            self.histogram[bucket["from"]] += bucket["calls"]

    def key(self):
        return self.communicator, self.size, self.collective, -1 if self.least is None else self.least

    def sizes(self):
        if self.least is None:
            return "any size"
        return size_text(self.least) if self.least == self.most else f"{size_text(self.least)} up to {size_text(self.most + 1)}"

    def name(self):
        return f"{self.collective} of {self.sizes()} on {self.communicator}"


def add_seconds(parts, seconds):
    if seconds["waiting"] is None:
        parts["unknown"] += seconds["total"]
        return
    for part in PARTS[:3]:
        parts[part] += seconds[part]


class Job:
    """What one file says."""

    def __init__(self, name, file):
        self.name = name
        self.version, self.ranks = file["sluice"], file["ranks_of_job"]
        self.members, self.clock = file["ranks"], file["clock"]
        self.hosts = len({member["process"].rpartition(" ")[2] for member in self.members})
        self.run = sum(member["seconds"] for member in self.members)
        self.left = sum(member["left_to_mpi"] for member in self.members)
        self.in_flight = sum(each["calls"] for each in file["classes"] if each["nonblocking"])
        sites = {}
        for each in file["classes"]:
            if not each["nonblocking"]:
                key = tuple(each[name] for name in ("communicator", "group", "size", "collective", "least_bytes"))
                sites.setdefault(key, Site(each)).add(each)
        self.sites = sorted(sites.values(), key=lambda site: -site.total)

    def total(self):
        return sum(site.total for site in self.sites)

    def parts(self):
        return {part: sum(site.parts[part] for site in self.sites) for part in PARTS}

    def late(self):
        return sum((site.late for site in self.sites), collections.Counter())

    def late_calls(self):
        return sum((site.late_calls for site in self.sites), collections.Counter())

    def by_collective(self):
        found = collections.defaultdict(lambda: dict.fromkeys(PARTS, 0.0))
        for site in self.sites:
            for part in PARTS:
                found[site.collective][part] += site.parts[part]
        return dict(found)

    def by_rank(self):
        found = {member["rank"]: dict.fromkeys(PARTS, 0.0) for member in self.members}
        for site in self.sites:
            for rank, parts in site.by_rank.items():
                for part in PARTS:
                    found[rank][part] += parts[part]
        return found

    def share(self, seconds):
        return seconds / self.run if self.run > 0 else 0.0

    def verdict(self):
        return Verdict(self)


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise Failure(f"{path} is no JSON, such as SLUICE_STATS=json:FILE leaves: {error}") from error
    if not isinstance(content, dict) or "schema" not in content or "sluice" not in content:
        raise Failure(f"{path} is no file of statistics, such as SLUICE_STATS=json:FILE leaves")
    if content["schema"] != SCHEMA:
        raise Failure(f"{path} has schema {content['schema']}, and this is for schema {SCHEMA}: its Sluice is {content['sluice']}")
    try:
        return Job(os.path.basename(path), content)
    except (KeyError, TypeError, AttributeError) as error:
        raise Failure(f"{path} lacks what a file of statistics has: {error}") from error
