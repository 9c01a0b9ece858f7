# SPDX-License-Identifier: BSD-3-Clause
"""What two sides' latencies come to: medians, ratios, tables, verdicts."""
import dataclasses
import math
import statistics

from launch import Failure


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


@dataclasses.dataclass
class Row:
    """
    One size, against the peer that is the hardest to beat there. All are medians over rounds; a ratio is one round's,
    whose two runs found the machine in much the same state. Above 1 Sluice is faster.
    """
    bytes: int
    peer: float
    sluice: float
    ratio: float
    lowest: float
    highest: float


@dataclasses.dataclass
class Comparison:
    """One collective on so many ranks: for each round a {bytes: us} of Sluice's and a list of them, a peer's each."""
    collective: str
    ranks: int
    peer_name: str
    peers: list = dataclasses.field(default_factory=list)
    sluice: list = dataclasses.field(default_factory=list)

    def rows(self):
        sizes = set.intersection(*(set(latencies) for latencies in self.sluice))
        return [self._row(size) for size in sorted(sizes)]

    def _row(self, size):
        sluice = [latencies[size] for latencies in self.sluice]
        against = [_row_against(size, peer, sluice) for peer in self._steady_peers(size)]
        if not against:
            raise Failure(f"no peer measured {self.collective} of {size} bytes in every round")
        return min(against, key=lambda row: row.ratio)

    def _steady_peers(self, size):
        """Latencies by round of the peers that have one in every round."""
        for rounds in zip(*self.peers):
            if all(size in latencies for latencies in rounds):
                yield [latencies[size] for latencies in rounds]

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
        lines = [f"{self.collective}, {self.ranks} ranks, {len(self.sluice)} rounds, against {self.peer_name}",
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
        rows = [dataclasses.asdict(row) for row in self.rows()]
        return {"collective": self.collective, "ranks": self.ranks, "peer": self.peer_name,
                "rows": rows, "geomean": self.geomean(),
                "worst": {"bytes": worst.bytes, "ratio": worst.ratio},
                "rounds": {"peers": self.peers, "sluice": self.sluice}}


def _row_against(size, peer, sluice):
    found = [p / s for p, s in zip(peer, sluice)]
    return Row(size, statistics.median(peer), statistics.median(sluice), statistics.median(found), min(found), max(found))
