"""The axes, named once. `layer head query key`, always in this order, counted from 0."""

import numpy as np
from jaxtyping import Bool, Float, Float32, UInt8

Weights = Float32[np.ndarray, "layer head query key"]
Attendable = Bool[np.ndarray, "layer query key"]
PerQuery = Float32[np.ndarray, "layer head query"]
ValueNorms = Float32[np.ndarray, "layer head key"]
RealQueries = Bool[np.ndarray, " query"]
PerHead = Float[np.ndarray, "layer head"]
PerLayer = Float[np.ndarray, " layer"]
PerRow = Float[np.ndarray, " row"]
Cells = Float[np.ndarray, "row column"]
Grey = UInt8[np.ndarray, "height width"]
Shown = Bool[np.ndarray, "row column"]
