# SPDX-License-Identifier: BSD-3-Clause
"""What two sides' latencies come to: medians, ratios, tables, verdicts."""
import dataclasses
import math
import statistics


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


@dataclasses.dataclass
class Row:
    """
    One size, against the peer that is the hardest to beat there. All are medians over rounds; a ratio is one round's.
    Above 1 Sluice is faster.
    """
    index: int  # of the peer, where there are several
    bytes: int
    peer: float
    sluice: float
    ratio: float
    lowest: float
    highest: float

    @staticmethod
    def against(index, size, pairs):
        """pairs: (the peer's, Sluice's) by round."""
        found = [peer / sluice for peer, sluice in pairs]
        return Row(index, size, statistics.median(peer for peer, _ in pairs), statistics.median(own for _, own in pairs),
                   statistics.median(found), min(found), max(found))


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
        return min((Row.against(index, size, pairs) for index, pairs in self._pairs(size)), key=lambda row: row.ratio)

    def _pairs(self, size):
        """For each peer its latencies beside Sluice's, by round. Who failed in most rounds does not count, if others did not."""
        found = {}
        for peers, sluice in zip(self.peers, self.sluice):
            for index, latencies in enumerate(peers):
                if size in latencies:
                    found.setdefault(index, []).append((latencies[size], sluice[size]))
        most = max(len(pairs) for pairs in found.values())
        return [(index, pairs) for index, pairs in found.items() if 2 * len(pairs) >= most]

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
