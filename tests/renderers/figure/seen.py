"""Colours as readers see them: in CIE Lab (1976), with deuteranopia (Machado, Oliveira, Fernandes 2009), in grey."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

Colours = Float[np.ndarray, "*cells part"]
XYZ = np.array(((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.072175), (0.0193339, 0.119192, 0.9503041)))
DEUTERANOPIA = np.array(
    ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881))
)


def lab(linear: Colours) -> Colours:
    """CIE Lab under D65 of red, green and blue as light."""
    parts = linear @ XYZ.T / XYZ.sum(axis=1)
    f = np.where(parts > 216 / 24389, np.cbrt(parts), (24389 / 27 * parts + 16) / 116)
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], axis=-1)


def visions(colours: Colours) -> Mapping[str, Colours]:
    """Colours (sRGB, 0 to 1) in CIE Lab as three readers see them."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    grey = np.repeat((linear @ XYZ[1])[..., None], 3, axis=-1)
    return {
        "as it is": lab(linear),
        "deuteranopia": lab(np.clip(linear @ DEUTERANOPIA.T, 0, 1)),
        "grey": lab(grey),
    }
