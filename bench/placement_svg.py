"""Line and bar charts as SVG text: enough for the reports, without a library to install."""
import html

COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#9c6b4e", "#a463f2", "#97bbf5")
# The greys of the charts, and what they are where the reader's screen is dark.
IN_THE_DARK = {"white": "#17181a", "#222": "#dcdcd8", "#ddd": "#2e3034", "#888": "#a0a09a"}
STYLE = "<style>@media (prefers-color-scheme: dark) { " + "".join(
    f'[{way}="{light}"] {{ {way}: {dark} }} ' for light, dark in IN_THE_DARK.items() for way in ("fill", "stroke")) + "}</style>"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 340, 64, 190, 34, 48


def _ticks(low, high, count=5):
    """Round numbers from at or below `low` to at or above `high`."""
    span = (high - low) or 1
    step = 10 ** len(str(int(span))) / 10 if span >= 1 else 0.1
    while span / step > count:
        step *= 2
    while span / step < count / 2.5:
        step /= 2
    first = int(low // step)
    last = int(-(-high // step))
    return [round(i * step, 6) for i in range(first, last + 1)]


def _text(x, y, text, anchor="middle", size=12, extra=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" {extra}>'
            f"{html.escape(str(text))}</text>")


def _frame(title, y_label, y_ticks, scale_y, body, legend):
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
             'font-family="sans-serif" fill="#222">',
             STYLE,
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
             _text(LEFT, 20, title, "start", 14, 'font-weight="bold"'),
             _text(16, (TOP + HEIGHT - BOTTOM) / 2, y_label, extra=
                   f'transform="rotate(-90 16 {(TOP + HEIGHT - BOTTOM) / 2:.1f})"')]
    for tick in y_ticks:
        y = scale_y(tick)
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
                     'stroke="#ddd"/>')
        lines.append(_text(LEFT - 6, y + 4, f"{tick:g}", "end"))
    lines += body
    for i, name in enumerate(legend):
        y = TOP + 14 + 20 * i
        lines.append(f'<rect x="{WIDTH - RIGHT + 12}" y="{y - 9}" width="12" height="12" '
                     f'fill="{COLOURS[i % len(COLOURS)]}"/>')
        lines.append(_text(WIDTH - RIGHT + 30, y + 1, name, "start"))
    return "\n".join(lines + ["</svg>"]) + "\n"


def _vertical(values, low):
    ticks = _ticks(min(values) if low is None else low, max(values))
    def scale(value):
        share = (value - ticks[0]) / (ticks[-1] - ticks[0])
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
    return ticks, scale


def lines(title, x_label, y_label, series, low=0, marks=()):
    """series: {name: [(x, y), ...]}; marks: [(x, text), ...], upright dashed lines."""
    points = [point for line in series.values() for point in line]
    ticks, scale_y = _vertical([y for _, y in points], low)
    x_ticks = _ticks(min(x for x, _ in points), max(x for x, _ in points), 8)
    def scale_x(value):
        share = (value - x_ticks[0]) / (x_ticks[-1] - x_ticks[0])
        return LEFT + share * (WIDTH - LEFT - RIGHT)
    body = [_text(scale_x(tick), HEIGHT - BOTTOM + 18, f"{tick:g}") for tick in x_ticks]
    body.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_label))
    for x, text in marks:
        body.append(f'<line x1="{scale_x(x):.1f}" x2="{scale_x(x):.1f}" y1="{TOP}" '
                    f'y2="{HEIGHT - BOTTOM}" stroke="#888" stroke-dasharray="4 3"/>')
        body.append(_text(scale_x(x) + 3, HEIGHT - BOTTOM - 6, text, "start", 11))
    for i, line in enumerate(series.values()):
        path = " ".join(f"{scale_x(x):.1f},{scale_y(y):.1f}" for x, y in line)
        colour = COLOURS[i % len(COLOURS)]
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return _frame(title, y_label, ticks, scale_y, body, series)


def bars(title, y_label, groups, series):
    """series: {name: [a value for each group]}."""
    ticks, scale_y = _vertical([value for values in series.values() for value in values], 0)
    room = (WIDTH - LEFT - RIGHT) / len(groups)
    width = 0.84 * room / len(series)
    body = []
    for g, group in enumerate(groups):
        body.append(_text(LEFT + (g + 0.5) * room, HEIGHT - BOTTOM + 18, group))
        for i, values in enumerate(series.values()):
            x, y = LEFT + (g + 0.08) * room + i * width, scale_y(values[g])
            body.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width * 0.92:.1f}" '
                        f'height="{scale_y(0) - y:.1f}" fill="{COLOURS[i % len(COLOURS)]}"/>')
    return _frame(title, y_label, ticks, scale_y, body, series)
