"""A square table of shares as SVG, darker for more."""
import html


def table(title, names, values):
    cell, left, top = 66, 96, 60
    width, height = left + cell * len(names) + 20, top + cell * len(names) + 20
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             'font-size="12" fill="#222">', f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="12" y="20" font-size="14" font-weight="bold">{html.escape(title)}</text>']
    for i, name in enumerate(names):
        middle = cell * i + cell / 2
        lines.append(f'<text x="{left + middle}" y="{top - 8}" text-anchor="middle">{html.escape(name)}</text>')
        lines.append(f'<text x="{left - 8}" y="{top + middle + 4}" text-anchor="end">{html.escape(name)}</text>')
        for j in range(len(names)):
            value = values[i][j]
            lines.append(f'<rect x="{left + cell * j}" y="{top + cell * i}" width="{cell - 2}" height="{cell - 2}" '
                         f'fill="#4269d0" fill-opacity="{value:.3f}"/>')
            lines.append(f'<text x="{left + cell * j + cell / 2 - 1}" y="{top + middle + 4}" text-anchor="middle" '
                         f'fill="{"white" if value > 0.6 else "#222"}">{value:.2f}</text>')
    return "\n".join(lines + ["</svg>"]) + "\n"
