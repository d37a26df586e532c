"""From values to shades: where on the scale, which colour, which character. Knows `report` and no terminal."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attnviz.report import SCALES, Scale

RGB = tuple[int, int, int]
WHITE: RGB = (255, 255, 255)
BLACK: RGB = (0, 0, 0)


def _read_colours(written: str) -> tuple[RGB, ...]:
    """Read colours as CSS writes them, but for the #."""
    return tuple((red, green, blue) for red, green, blue in map(bytes.fromhex, written.split()))


# White to dark at nine equal steps, for multiples of an equal share. Of 256 steps in CIE Lab the smallest is .93 of the
# mean (mako_r .49, Blues and YlGnBu .60), in grey and as seen with deuteranopia .83.
LIFT = _read_colours("ffffff c5eaf0 88d0e3 4ab1d5 0c8dbf 14689c 274671 262b45 18171e")
# viridis (Smith and van der Walt 2015) at nine equal steps.
VIRIDIS = _read_colours("440154 472c7a 3b518b 2c718e 21908d 27ad81 5cc863 aadc32 fde725")
# From against over nothing to for: vlag of seaborn at nine equal steps, its middle white.
DIVERGING = _read_colours("2369bd 5e8ec8 91b0d5 c5d3e6 faf8f8 ebcbcb da9b9c c56a6d a9373e")
BLOCKS, ASCII = " ░▒▓█", " .:-=+*#%@"


def places(values: Float[np.ndarray, "row column"], scale: Scale) -> Float[np.ndarray, "row column"]:
    """Place each value (see `Heatmap.shade`) on the scale, 0 to 1; what lies outside is at its end."""
    low, high, shown = scale.low, scale.high, values.astype(np.float64)
    if scale.family.is_logarithmic:
        low, high, shown = np.log10(low), np.log10(high), np.log10(np.maximum(shown, low))
    return np.clip((shown - low) / ((high - low) or 1.0), 0.0, 1.0)


def colour(place: float, kind: str) -> RGB:
    """Return the colour at a place between 0 and 1 on a scale of this kind."""
    steps = {"lift": LIFT, "diverging": DIVERGING}.get(SCALES[kind].colours, VIRIDIS)
    step = min(int(place * 8), 7)
    part = place * 8 - step
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(steps[step], steps[step + 1], strict=True))
    return red, green, blue


def character(place: float, ramp: str) -> str:
    """Return the character of `ramp`, light to dark, nearest to `place`."""
    return ramp[round(place * (len(ramp) - 1))]


def luminance(colour: Sequence[float]) -> float:
    """Compute the relative luminance, 0 black to 1 white (WCAG 2.2), of a colour in parts of 0 to 255."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def ink(background: RGB) -> RGB:
    """Choose black or white, whichever is easier to read: at least 4.5 to 1 on any colour."""
    light = luminance(background)
    return WHITE if 1.05 / (light + 0.05) > (light + 0.05) / 0.05 else BLACK
