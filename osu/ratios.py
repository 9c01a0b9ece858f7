# SPDX-License-Identifier: BSD-3-Clause
"""What two sides' latencies come to: medians, ratios, tables, verdicts."""
import dataclasses
import math
import statistics


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


@dataclasses.dataclass
class Row:
    """One size. Latencies are medians over rounds; a ratio above 1 means that Sluice is faster."""
    bytes: int
    peer: float
    sluice: float
    lowest: float   # of the ratios of single rounds
    highest: float

    @property
    def ratio(self):
        return self.peer / self.sluice


@dataclasses.dataclass
class Comparison:
    """One collective on so many ranks: a {bytes: us} for each round, per side."""
    collective: str
    ranks: int
    peer_name: str
    peer: list = dataclasses.field(default_factory=list)
    sluice: list = dataclasses.field(default_factory=list)

    def rows(self):
        sizes = set.intersection(*(set(latencies) for latencies in self.peer + self.sluice))
        return [self._row(size) for size in sorted(sizes)]

    def _row(self, size):
        peer = [latencies[size] for latencies in self.peer]
        sluice = [latencies[size] for latencies in self.sluice]
        ratios = [p / s for p, s in zip(peer, sluice)]
        return Row(size, statistics.median(peer), statistics.median(sluice), min(ratios), max(ratios))

    def geomean(self):
        return geometric_mean(row.ratio for row in self.rows())

    def worst(self):
        return min(self.rows(), key=lambda row: row.ratio)

    def misses(self, least_geomean, least_ratio):
        """What it falls short of, as sentences."""
        found = []
        name = f"{self.collective}, {self.ranks} ranks"
        if least_geomean and self.geomean() < least_geomean:
            found.append(f"{name}: geometric mean {self.geomean():.2f}, wanted {least_geomean:g}")
        for row in self.rows() if least_ratio else ():
            if row.ratio < least_ratio:
                found.append(f"{name}, {row.bytes} bytes: {row.ratio:.2f}, wanted {least_ratio:g}")
        return found

    def table(self):
        lines = [f"{self.collective}, {self.ranks} ranks, {len(self.peer)} rounds, against {self.peer_name}",
                 f"{'bytes':>10}{'peer us':>12}{'sluice us':>12}{'ratio':>8}{'min':>8}{'max':>8}"]
        for row in self.rows():
            lines.append(f"{row.bytes:>10}{row.peer:>12.2f}{row.sluice:>12.2f}{row.ratio:>8.2f}"
                         f"{row.lowest:>8.2f}{row.highest:>8.2f}")
        worst = self.worst()
        lines.append(f"geometric mean {self.geomean():.2f}, worst {worst.ratio:.2f} at {worst.bytes} bytes")
        return "\n".join(lines)

    def data(self):
        """For JSON."""
        worst = self.worst()
        rows = [{**dataclasses.asdict(row), "ratio": row.ratio} for row in self.rows()]
        return {"collective": self.collective, "ranks": self.ranks, "peer": self.peer_name,
                "rows": rows, "geomean": self.geomean(),
                "worst": {"bytes": worst.bytes, "ratio": worst.ratio},
                "rounds": {"peer": self.peer, "sluice": self.sluice}}


def fastest(measurements):
    """At each size the lowest of several {bytes: us}."""
    best = {}
    for latencies in measurements:
        for size, latency in latencies.items():
            best[size] = min(latency, best.get(size, math.inf))
    return best
