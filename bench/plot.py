"""A line plot as SVG: axes, points, the spread around them, a legend. Enough for the plots of docs/plots; draws, measures nothing."""
import html
import math

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 55
COLOURS = ("#1f6fb4", "#d1641a", "#3a8f3a", "#8a4fb0", "#a8323a", "#666666")
HALO = 'paint-order="stroke" stroke="white" stroke-width="3"'


def _ticks(low, high):
    """Some four round figures between the two."""
    span = max(high - low, 1e-12)
    step = 10.0 ** math.floor(math.log10(span / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 5)
    first = math.ceil(low / step - 1e-9)
    return [(first + index) * step for index in range(int((high - first * step) / step + 1e-9) + 1)]


def _short(value):
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return "%.3g%s" % (value / size, unit)
    return "%.3g" % value


def svg(title, x_title, y_title, lines, logarithmic, base=0.0):
    """`lines`: {name: [(x, y, low, high), ...]}; low and high may be None. The y axis starts at `base`, or below it."""
    points = [point for line in lines.values() for point in line]
    xs = sorted({point[0] for point in points})
    ys = [value for point in points for value in point[1:] if value is not None]
    low_y, high_y = min(base, min(ys)), max(ys + [base + 1e-9]) * 1.05

    def place(x):
        return math.log10(max(x, 0.5)) if logarithmic else float(x)  # a zero on a logarithmic axis lies left of one

    low_x, high_x = place(xs[0]), place(xs[-1])
    if high_x == low_x:
        high_x = low_x + 1

    def at_x(x):
        return LEFT + (place(x) - low_x) / (high_x - low_x) * (WIDTH - LEFT - RIGHT)

    def at_y(y):
        return HEIGHT - BOTTOM - (y - low_y) / (high_y - low_y) * (HEIGHT - TOP - BOTTOM)

    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">' % (WIDTH, HEIGHT),
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="%d" y="20" font-size="14" font-weight="bold">%s</text>' % (LEFT, html.escape(title))]
    for tick in _ticks(low_y, high_y):
        y = at_y(tick)
        out.append('<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>' % (LEFT, y, WIDTH - RIGHT, y))
        out.append('<text x="%d" y="%.1f" text-anchor="end">%s</text>' % (LEFT - 6, y + 4, _short(tick)))
    for x in xs:
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%s</text>' % (at_x(x), HEIGHT - BOTTOM + 18, _short(x)))
    out.append('<text x="%d" y="%d" text-anchor="middle">%s</text>' % ((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, html.escape(x_title)))
    out.append('<text transform="translate(16 %d) rotate(-90)" text-anchor="middle">%s</text>' %
               ((TOP + HEIGHT - BOTTOM) / 2, html.escape(y_title)))
    for index, (name, line) in enumerate(lines.items()):
        colour = COLOURS[index % len(COLOURS)]
        for x, _, low, high in line:
            if low is not None and high is not None:
                out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-opacity="0.4" stroke-width="3"/>' %
                           (at_x(x), at_y(low), at_x(x), at_y(high), colour))
        path = " ".join("%.1f,%.1f" % (at_x(point[0]), at_y(point[1])) for point in line)
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>' % (path, colour))
        out += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (at_x(point[0]), at_y(point[1]), colour) for point in line]
        out.append('<text x="%d" y="%d" fill="%s" %s>%s</text>' % (LEFT + 8, TOP + 12 + 16 * index, colour, HALO, html.escape(name)))
    return "\n".join(out + ["</svg>"]) + "\n"
