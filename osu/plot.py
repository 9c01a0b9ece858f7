# SPDX-License-Identifier: BSD-3-Clause
"""
Drawing comparisons: above latency against size, both axes logarithmic; below the ratio with its spread. And sides
beside each other with what links allow, latency alone.
"""
from launch import Failure

# Hues that stay apart for the colour-blind, and ink for text and lines that are no data.
PEER, SLUICE, OTHER, INK = "#b3552e", "#2467a8", "#7a7a1f", "#444444"


def label(size):
    for shift, unit in ((20, "M"), (10, "K")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return str(size)


def find_pyplot():
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
        return pyplot
    except ImportError as error:
        raise Failure("no drawing without matplotlib. On Debian and Ubuntu: "
                      "apt-get install python3-matplotlib") from error


def draw(comparisons, path):
    pyplot = find_pyplot()
    figure, axes = pyplot.subplots(2, len(comparisons), squeeze=False, sharex="col",
                                   figsize=(1.2 + 3.9 * len(comparisons), 6),
                                   height_ratios=(3, 2), layout="constrained")
    for column, comparison in enumerate(comparisons):
        draw_latency(axes[0][column], comparison)
        draw_ratio(axes[1][column], comparison)
    axes[0][0].set_ylabel("latency, us")
    axes[1][0].set_ylabel("ratio, peer / sluice")
    axes[0][0].legend(frameon=False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def positions(rows):
    """Where sizes stand on the axis: a barrier has none and stands alone."""
    return [max(row.bytes, 1) for row in rows]


def draw_latency(axes, comparison):
    rows = comparison.rows()
    axes.plot(positions(rows), [row.peer for row in rows], "o-", color=PEER, markersize=4,
              label=comparison.peer_name)
    axes.plot(positions(rows), [row.sluice for row in rows], "o-", color=SLUICE, markersize=4,
              label="Sluice")
    dress(axes, f"{comparison.collective}, {comparison.ranks} ranks")


def dress(axes, title):
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_title(title, fontsize=11)
    axes.grid(True, which="major", color=INK, alpha=0.15)


def draw_ratio(axes, comparison):
    rows = comparison.rows()
    ratios = [row.ratio for row in rows]
    below = [max(row.ratio - row.lowest, 0) for row in rows]
    above = [max(row.highest - row.ratio, 0) for row in rows]
    axes.errorbar(positions(rows), ratios, yerr=(below, above), fmt="o-", color=SLUICE, markersize=4,
                  elinewidth=1, capsize=2)
    axes.axhline(1, color=INK, linewidth=1)
    axes.set_ylim(bottom=0)
    axes.set_xticks(positions(rows), [label(row.bytes) for row in rows], rotation=60)
    axes.minorticks_off()
    axes.set_xlabel(f"bytes; geometric mean {comparison.geomean():.2f}")
    axes.grid(True, which="major", color=INK, alpha=0.15)


def draw_pairs(results, pairs, path):
    """results: rows with a collective, bytes, medians {side: us or None}, allowed: us or None. At least one. pairs: of
    a peer and of Sluice measured beside it, one or two."""
    pyplot = find_pyplot()
    names = list(dict.fromkeys(row["collective"] for row in results))
    figure, axes = pyplot.subplots(1, len(names), squeeze=False, figsize=(1.2 + 3.9 * len(names), 4),
                                   layout="constrained")
    for at, name in zip(axes[0], names):
        rows = sorted((row for row in results if row["collective"] == name), key=lambda row: row["bytes"])
        for (peer, ours), hue, style in zip(pairs, (PEER, OTHER), ("o-", "s-")):
            for side, color in ((peer, hue), (ours, SLUICE)):
                draw_side(at, [(row["bytes"], row["medians"][side]) for row in rows], style, color, side)
        draw_side(at, [(row["bytes"], row["allowed"]) for row in rows], "--", INK, "links allow")
        dress(at, name)
        ticks = [row["bytes"] for row in rows][::2]
        at.set_xticks(ticks, [label(size) for size in ticks], rotation=60)
        at.minorticks_off()
        at.set_xlabel("bytes")
    axes[0][0].set_ylabel("latency, us")
    axes[0][0].legend(frameon=False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def draw_side(axes, points, style, hue, name):
    """points: (bytes, us), or None in place of us."""
    found = [(size, us) for size, us in points if us is not None]
    if found:
        axes.plot(*zip(*found), style, color=hue, markersize=4, linewidth=1 if style == "--" else 1.5, label=name)
