#!/usr/bin/env python3
"""Draws what tools/recompute_frontier.py measured: step time over arena, both relative to the plain plan.

  tools/plot_frontier.py frontier.csv > frontier.svg
"""
import csv
import sys

# Published for ResNet-50 on a GPU (share of memory, slowdown in percent): the curve to beat.
PUBLISHED = [(0.66, 3.2), (0.53, 5.6), (0.40, 9.3), (0.33, 12.0)]
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 420, 64, 52, 24, 20
MOST = 35.0  # percent


def x_of(share):
    return LEFT + (WIDTH - LEFT - RIGHT) * (1 - share) / 0.9


def y_of(percent):
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (percent + 2) / (MOST + 2)


def text(x, y, words, anchor="middle", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}>{words}</text>'


def line(points, style):
    return f'<polyline fill="none" {style} points="{" ".join(f"{x_of(s):.1f},{y_of(p):.1f}" for s, p in points)}"/>'


def main():
    rows = list(csv.DictReader(open(sys.argv[1], encoding="utf-8")))
    best = [r for r in rows if r["recompute"].startswith("optimal")]
    named = [r for r in rows if not r["recompute"].startswith("optimal")]
    place = lambda r: (float(r["share"]), 100 * (float(r["time_ratio"]) - 1))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
           "<style>svg{background:#fff;color:#222} text{fill:currentColor} .grid{stroke:#ddd} .ours{stroke:#0b62a8} .theirs{stroke:#b5541c}"
           " @media (prefers-color-scheme: dark){svg{background:#16181c;color:#ddd} .grid{stroke:#333} .ours{stroke:#6cb6ff} .theirs{stroke:#f0a070}}</style>"]
    for percent in range(0, int(MOST) + 1, 5):
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_of(percent):.1f}" y2="{y_of(percent):.1f}"/>')
        out.append(text(LEFT - 8, y_of(percent) + 4, f"+{percent} %", "end"))
    for tenth in range(10, 0, -1):
        out.append(f'<line class="grid" x1="{x_of(tenth / 10):.1f}" x2="{x_of(tenth / 10):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        out.append(text(x_of(tenth / 10), HEIGHT - BOTTOM + 18, f"{tenth / 10:.1f}"))
    out.append(text((LEFT + WIDTH) / 2, HEIGHT - 10, "arena, of the plain plan’s"))
    out.append(text(LEFT, 15, "time of a step, beyond the plain plan’s", "start"))
    out.append(line(PUBLISHED, 'class="theirs" stroke-width="2" stroke-dasharray="6 4"'))
    out.append(text(x_of(0.40) - 8, y_of(9.3) - 10, "published, ResNet-50", "end"))
    points = sorted((place(r) for r in best), reverse=True)
    out.append(line([(1.0, 0.0)] + points, 'class="ours" stroke-width="2.5"'))
    for r in best:
        share, percent = place(r)
        low, high = (100 * (float(r[k]) - 1) for k in ("lowest_ratio", "highest_ratio"))
        out.append(f'<line class="ours" x1="{x_of(share):.1f}" x2="{x_of(share):.1f}" y1="{y_of(max(low, -2)):.1f}" y2="{y_of(min(high, MOST)):.1f}" opacity="0.45"/>')
        out.append(f'<circle class="ours" fill="currentColor" cx="{x_of(share):.1f}" cy="{y_of(percent):.1f}" r="3.5"><title>{r["recompute"]}: {share:.3f}, {percent:+.1f} %</title></circle>')
    for r in named:
        share, percent = place(r)
        out.append(f'<rect class="ours" fill="none" x="{x_of(share) - 4:.1f}" y="{y_of(percent) - 4:.1f}" width="8" height="8"/>')
        out.append(text(x_of(share) + 9, y_of(percent) - 7, r["recompute"], "start"))
    out.append("</svg>")
    print("\n".join(out))


if __name__ == "__main__":
    main()
