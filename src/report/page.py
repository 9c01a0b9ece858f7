# SPDX-License-Identifier: BSD-3-Clause
"""
The page of a report: one file of HTML that needs nothing else.
"""
import string
from html import escape

import drawing
from reading import PARTS
from verdict import percent, ranks_text

MOST_SITES = 10

PAGE = string.Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>$title</title>
<style>
body { font: 15px/1.5 sans-serif; color: #222; max-width: 62em; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.3em; } h2 { font-size: 1.1em; margin-top: 2em; }
.verdict { font-size: 1.2em; border-left: 5px solid #b3552e; padding: .4em .8em; background: #f6f3ee; }
table { border-collapse: collapse; font-size: .85em; } th, td { padding: .25em .6em; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child, td.text { text-align: left; } svg { max-width: 100%; height: auto; }
small { color: #666; }
</style>
</head>
<body>
<h1>$title</h1>
$body
<p><small>Shares are of the time of all ranks from their first collective to the end. Waiting is from a rank's entry to that of the last
rank whose data it needs; what could be saved is what calls take beyond the tenth percentile of their kind on that rank.
sluice-statistics(5) says how this is measured.</small></p>
</body>
</html>
""")


def table(head, rows):
    """rows: of cells that are HTML; the first of a row is a text."""
    lines = ["<tr>" + "".join(f"<th>{escape(each)}</th>" for each in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{each}</td>" for each in row) + "</tr>" for row in rows]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def time_text(seconds):
    for least, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= least:
            return f"{seconds / least:.3g} {unit}"
    return f"{1e9 * seconds:.3g} ns"


def late_text(site):
    worst = [rank for rank, seconds in site.late.most_common(3) if seconds > 0.1 * sum(site.late.values())]
    return ranks_text(worst) if worst and site.parts["waiting"] > 0 else ""


def way_text(site):
    return ", ".join(f"{algorithm} ({carrier})" for (algorithm, carrier), _ in site.ways.most_common(2))


def site_rows(job):
    for site in job.sites[:MOST_SITES]:
        calls = max(site.calls * max(len(site.by_rank), 1), 1)
        yield [escape(site.name()), site.size, site.calls, time_text(site.total / calls), percent(job.share(site.total)),
               *(percent(job.share(site.parts[part])) for part in PARTS[:3]), escape(late_text(site)), escape(way_text(site))]


def sites(job):
    return table(("call site", "ranks", "calls", "a call", "of the run", "waiting", "moving", "could be saved", "late", "by"),
                 site_rows(job))


def late_ranks(job):
    late, calls = job.late(), job.late_calls()
    rows = [[f"rank {rank}", time_text(seconds), f"{calls[rank]:.0f}", escape(process_of(job, rank))]
            for rank, seconds in late.most_common(MOST_SITES) if seconds > 0]
    return table(("late", "others waited", "calls in which it was the latest", "process"), rows) if rows else "<p>Nobody was waited for.</p>"


def process_of(job, rank):
    return next((member["process"] for member in job.members if member["rank"] == rank), "")


def about(job):
    return (f"<p>{escape(job.name)}: {job.ranks} ranks on {job.hosts} host{'s' if job.hosts != 1 else ''}, "
            f"{time_text(job.run / max(len(job.members), 1))} from the first collective to the end; Sluice {escape(job.version)}.</p>")


def verdicts(jobs):
    for job in jobs:
        verdict = job.verdict()
        name = f"<b>{escape(job.name)}</b>: " if len(jobs) > 1 else ""
        yield f'<p class="verdict">{name}{escape(verdict.sentence)}</p>'
        yield from (f"<p>{escape(each)}</p>" for each in verdict.advice)


def comparison(first, second):
    """Of the sites that both have, by their names."""
    sites_of_second = {}
    for site in second.sites:
        sites_of_second.setdefault(site.key(), []).append(site)
    rows, seen = [], set()
    for site in first.sites:
        others = sites_of_second.get(site.key())
        if not others or site.key() in seen:
            continue
        seen.add(site.key())
        before = sum(each.total for each in first.sites if each.key() == site.key())
        after = sum(each.total for each in others)
        rows.append([escape(site.name()), time_text(before), time_text(after), f"{after / before:.2f}" if before > 0 else "",
                     escape(way_text(site)), escape(way_text(others[0]))])
    run = [job.run / max(len(job.members), 1) for job in (first, second)]
    spent = [job.total() / max(len(job.members), 1) for job in (first, second)]
    sentence = (f"{second.name} takes {run[1] / run[0]:.2f} of the time of {first.name}" if run[0] > 0 else "") + (
        f", and its collectives {spent[1] / spent[0]:.2f} of the time of those" if spent[0] > 0 else "")
    return (f"<h2>Side by side</h2>\n<p>{escape(sentence)}.</p>\n"
            + table(("call site", first.name, second.name, "ratio", "by", "then by"), rows[:MOST_SITES]))


def body(jobs):
    yield from verdicts(jobs)
    yield from map(about, jobs)
    if len(jobs) == 2:
        yield comparison(*jobs)
    for draw in drawing.DRAWINGS:
        yield drawing.svg(jobs, draw)
    for job in jobs:
        of = f": {escape(job.name)}" if len(jobs) > 1 else ""
        yield f"<h2>The most expensive call sites{of}</h2>\n{sites(job)}"
        yield f"<h2>Who was late{of}</h2>\n{late_ranks(job)}"


def make(jobs):
    title = "Collectives of " + " and ".join(job.name for job in jobs)
    return PAGE.substitute(title=escape(title), body="\n".join(body(jobs)))


def drawings_as_png(jobs):
    return drawing.png(jobs)
