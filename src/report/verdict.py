# SPDX-License-Identifier: BSD-3-Clause
"""
What a job's statistics amount to, in a sentence, and what may help.
"""
# Of the run: less is not worth anybody's time.
LITTLE = 0.05
# Of the waiting: the ranks that it is for are named, unless they are many, or a quarter of the job's.
MOST = 0.75
MOST_NAMED = 4
# Bytes of a call from which time is a matter of bandwidth.
LARGE = 32 << 10


def percent(share):
    number = 100 * share
    return f"{number:.0f} %" if number >= 9.5 else f"{number:.1f} %" if number >= 0.05 else "0 %"


def listed(words):
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def ranks_text(ranks):
    ranks = sorted(ranks)
    return ("rank " if len(ranks) == 1 else "ranks ") + listed([str(rank) for rank in ranks])


def culprits(late, ranks):
    """The few ranks that most of the waiting is for, the worst first; none if it takes more than a few."""
    few = min(MOST_NAMED, max(1, ranks // 4))
    waited, found = sum(late.values()), []
    for rank, seconds in sorted(late.items(), key=lambda item: -item[1]):
        if sum(late[each] for each in found) >= MOST * waited or len(found) > few:
            break
        if seconds > 0:
            found.append(rank)
    return found if len(found) <= few else []


class Verdict:
    """sentence: in a line. advice: what may help, the most useful first."""

    def __init__(self, job):
        self.job = job
        self.parts = job.parts()
        self.named = culprits(job.late(), job.ranks)
        self.kind = self._kind()
        self.sentence = self._sentence()
        self.advice = list(self._advice())

    def _kind(self):
        """What most of the time goes to: little, waiting, bandwidth, latency, rest or unknown."""
        if not self.job.sites or self.job.share(self.job.total()) < LITTLE:
            return "little"
        worst = max(self.parts, key=self.parts.get)
        if worst != "moving":
            return worst
        large = sum(site.parts["moving"] for site in self.job.sites if site.calls and mean_bytes(site) >= LARGE)
        return "bandwidth" if 2 * large >= self.parts["moving"] else "latency"

    def _sentence(self):
        job = self.job
        if not job.sites:
            return "There is nothing to say of collectives: Sluice has carried none."
        told = [f"{percent(job.share(self.parts[part]))} {text}" for part, text in (
            ("waiting", "waiting for " + self._whom()), ("moving", "moving data"),
            ("rest", "could be saved if every call went as well as the best tenth of its kind"),
            ("unknown", "for which it is not known")) if self.parts[part] > 0]
        begin = "Collectives are not the problem: they take" if self.kind == "little" else "Collectives take"
        return f"{begin} {percent(job.share(job.total()))} of the run; of the run {listed(told)}."

    def _whom(self):
        return ranks_text(self.named) if self.named else "late ranks, now one and now another"

    def _advice(self):
        if self.kind in WORDS:
            yield WORDS[self.kind].format(whom=self._whom(), site=self._worst_site(), rate=self._rate())
        if self.job.left:
            yield (f"MPI has done {self.job.left} calls that are not timed here: a setting or a rule names mpi, or they were on "
                   "communicators that Sluice does not serve.")
        if self.job.in_flight:
            yield (f"There were {self.job.in_flight} non-blocking calls. Their time is not counted here, because the program may have "
                   "worked meanwhile.")
        missing = self.job.ranks - len(self.job.members)
        if missing > 0:
            reasons = {member["ended_by"] for member in self.job.members if member["ended_by"]}
            yield (f"{missing} of {self.job.ranks} ranks are not in this file, so it does not know who was late. "
                   + " ".join(sorted(reasons)))
        if self.job.clock["error"] > 0:
            yield (f"The ranks are on several hosts, whose clocks may differ by {1e6 * self.job.clock['error']:.0f} us; waits shorter "
                   "than that say nothing.")

    def _worst_site(self):
        part = {"bandwidth": "moving", "latency": "moving"}.get(self.kind, self.kind)
        return max(self.job.sites, key=lambda site: site.parts.get(part, 0)).name()

    def _rate(self):
        """Of the site that moves most: what a rank's call carries in a second."""
        site = max(self.job.sites, key=lambda site: site.parts["moving"])
        seconds = site.parts["moving"]
        return f"{site.bytes / seconds / 1e9:.2f} GB/s" if seconds > 0 else "?"


def mean_bytes(site):
    ranks = max(1, len(site.by_rank))
    return site.bytes / site.calls / ranks


WORDS = {
    "waiting": "Most of it is imbalance, which no network and no algorithm mends: find out what {whom} did before {site}. Was it more "
               "work, a slower processor, input or output, another program beside it?",
    "bandwidth": "Most of it is moving data, at {rate} of each rank's part of a call in {site}. Send less (smaller types, less often), or "
                 "by a faster way: sluice(7), PERFORMANCE, and `sluice tune` say which is to be had here.",
    "latency": "Most of it is many short calls, most in {site}. Join several into one, or use fewer ranks for that part.",
    "rest": "Calls of one kind take very different times, most in {site}: other work on the processors, more ranks than processors, "
            "other traffic, or memory that is touched for the first time.",
    "unknown": "Which ranks waited is not known: no call is in all ranks' samples.",
}
