# SPDX-License-Identifier: BSD-3-Clause
"""
The drawings of a report, by matplotlib.
"""
import io
import math

from reading import PARTS, Failure

try:
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError as error:
    raise Failure("it draws with matplotlib, which this Python lacks. On Debian and Ubuntu: apt-get install python3-matplotlib; "
                  "elsewhere: python3 -m pip install matplotlib") from error

# Hues that stay apart for the colour-blind, and ink for what is no data.
COLOURS = {"waiting": "#b3552e", "moving": "#2467a8", "rest": "#c9a227", "unknown": "#999999"}
LABELS = {"waiting": "waiting for late ranks", "moving": "moving data", "rest": "could be saved", "unknown": "not known"}
INK = "#444444"
SITES = 3  # whose histograms are drawn


def used_parts(rows):
    return [part for part in PARTS if any(row[part] > 0 for row in rows)]


def dress(axes, title):
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8, colors=INK)


def stacked(axes, places, rows, scale, draw):
    """Bars of all parts, one on the other. draw: axes.bar or axes.barh, with the name of the offset."""
    bars, offset = draw
    ends = [0.0] * len(rows)
    for part in used_parts(rows):
        lengths = [scale * row[part] for row in rows]
        bars(places, lengths, **{offset: ends}, color=COLOURS[part], label=LABELS[part])
        ends = [end + length for end, length in zip(ends, lengths)]
    if rows and used_parts(rows):
        axes.legend(frameon=False, fontsize=8)


def draw_collectives(axes, job):
    rows = job.by_collective()
    names = sorted(rows, key=lambda name: sum(rows[name].values()))
    stacked(axes, names, [rows[name] for name in names], 100 / job.run if job.run else 0, (axes.barh, "left"))
    axes.set_xlabel("% of the run", fontsize=8, color=INK)
    dress(axes, "Time by collective")


def draw_ranks(axes, job):
    rows = job.by_rank()
    ranks = sorted(rows)
    seconds = {member["rank"]: member["seconds"] for member in job.members}
    shares = [{part: rows[rank][part] / seconds[rank] if seconds[rank] else 0 for part in PARTS} for rank in ranks]
    stacked(axes, ranks, shares, 100, (axes.bar, "bottom"))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("rank", fontsize=8, color=INK)
    axes.set_ylabel("% of its time", fontsize=8, color=INK)
    dress(axes, "Time in collectives by rank")


def draw_late(axes, job):
    late = job.late()
    ranks = sorted(member["rank"] for member in job.members)
    axes.bar(ranks, [late[rank] for rank in ranks], color=COLOURS["waiting"])
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("rank", fontsize=8, color=INK)
    axes.set_ylabel("s, of all others", fontsize=8, color=INK)
    dress(axes, "Who is waited for")


def buckets(histogram):
    """Counts and edges, with the empty buckets between others."""
    least, most = min(histogram), max(histogram)
    edges = [least]
    while edges[-1] < 1.5 * most:
        edges.append(2 * edges[-1])
    counts = [0] * (len(edges) - 1)
    for begin, calls in histogram.items():
        counts[round(math.log2(begin / least))] += calls
    return counts, edges


def draw_histogram(axes, job):
    for site in job.sites[:SITES]:
        if site.histogram:
            counts, edges = buckets(site.histogram)
            axes.stairs(counts, edges, label=site.name()[:60])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("s a call", fontsize=8, color=INK)
    axes.set_ylabel("calls", fontsize=8, color=INK)
    if job.sites:
        axes.legend(frameon=False, fontsize=7)
    dress(axes, "How long calls take, of the most expensive sites")


DRAWINGS = (draw_collectives, draw_ranks, draw_late, draw_histogram)


def figure_of(jobs, drawings):
    figure, axes = pyplot.subplots(len(drawings), len(jobs), squeeze=False, layout="constrained",
                                   figsize=(8 if len(jobs) == 1 else 12, 2.9 * len(drawings)))
    for column, job in enumerate(jobs):
        for row, draw in enumerate(drawings):
            draw(axes[row][column], job)
        if len(jobs) > 1:
            axes[0][column].annotate(job.name, (0, 1.12), xycoords="axes fraction", fontsize=10, weight="bold")
    return figure


def saved(figure, kind):
    output = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "sluice"}):
        figure.savefig(output, format=kind, dpi=120, metadata={"Date": None} if kind == "svg" else None)
    pyplot.close(figure)
    return output.getvalue()


def svg(jobs, drawing):
    """An element <svg> of its own."""
    text = saved(figure_of(jobs, (drawing,)), "svg").decode()
    return text[text.index("<svg"):]


def png(jobs):
    return saved(figure_of(jobs, DRAWINGS), "png")
