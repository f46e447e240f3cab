"""Panels of how time and RAM of a training grow (tests/bench/run --growth). Both axes are logarithmic: a straight line is a power,
and its slope the exponent."""
import math
from xml.sax.saxutils import escape

STYLE = """
  svg { color-scheme: light dark; --ink: #1b2128; --soft: #59636e; --line: #d5dbe1; --page: #ffffff; --kept: #1f5fbf;
    --recomputed: #b4541a; }
  @media (prefers-color-scheme: dark) { svg { --ink: #e4e8ec; --soft: #9aa5b1; --line: #323b45; --page: #0f1317;
    --kept: #6ea8fe; --recomputed: #f0a050; } }
  .page { fill: var(--page); }
  text { font: 12.5px system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: var(--soft); }
  .title { font-size: 14px; font-weight: 600; fill: var(--ink); }
  .grid { stroke: var(--line); } .axis { stroke: var(--soft); }
  .kept, .recomputed { fill: none; stroke-width: 2; stroke-linejoin: round; }
  .kept { stroke: var(--kept); } .recomputed { stroke: var(--recomputed); stroke-dasharray: 6 3; }
  circle.kept { fill: var(--kept); } circle.recomputed { fill: var(--recomputed); stroke-dasharray: none; }
"""
SERIES = (("kept", "everything kept for backward"), ("recomputed", "recomputed in backward"))
UNITS = (("milliseconds", "a training step, milliseconds", 1), ("bytes", "RAM of a training, kilobytes", 1e-3))
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 440, 270, 58, 16, 34, 44


def line_values(low, high):
    """Values with a line: powers of ten, with 2 and 5 times as much where there are few of them."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if high < 300 * low else (1,)
    return [factor * 10.0**power for power in powers for factor in factors if low <= factor * 10.0**power <= high]


def panel(curves, unit, x0, y0):
    """`curves`: {(unit, series): [(tokens, value), …]}"""
    what, y_title, scale = unit
    series = [(of, [(x, y * scale) for x, y in sorted(curves[what, of])]) for of, _ in SERIES]
    points = [point for _, values in series for point in values]
    sizes = sorted({x for x, _ in points})
    low, high = (edge(y for _, y in points) for edge in (min, max))
    low, high = low / 1.3, high * 1.3

    def at(value, ends, first, last):
        part = math.log(value / ends[0]) / math.log(ends[1] / ends[0]) if ends[1] > ends[0] else 0.5
        return round(first + part * (last - first), 1)

    def x(value):
        return at(value, (sizes[0], sizes[-1]), LEFT + 8, WIDTH - RIGHT - 8)

    def y(value):
        return at(value, (low, high), HEIGHT - BOTTOM, TOP)

    out = [f'<g transform="translate({x0} {y0})">', f'<text class="title" x="{LEFT}" y="18">{escape(y_title)}</text>']
    for value in line_values(low, high):
        out += [f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value)}" y2="{y(value)}"/>',
                f'<text text-anchor="end" x="{LEFT - 6}" y="{y(value) + 4}">{value:,g}</text>']
    for size in sizes:
        out.append(f'<text text-anchor="middle" x="{x(size)}" y="{HEIGHT - BOTTOM + 17}">{size}</text>')
    out += [f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}"/>',
            f'<text text-anchor="middle" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}">tokens (2 layers)</text>']
    for of, values in series:
        out.append(f'<polyline class="{of}" points="{" ".join(f"{x(size)},{y(value)}" for size, value in values)}"/>')
        for size, value in values:
            out.append(f'<circle class="{of}" r="3" cx="{x(size)}" cy="{y(value)}"><title>{size}: {value:,.4g}</title></circle>')
    return out + ["</g>"]
