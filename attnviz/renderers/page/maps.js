// The views of maps.
import { lines } from "./lines.js";
import { matrix } from "./matrix.js";
import { overview } from "./overview.js";
import { makers } from "./views.js";

Object.assign(makers, { overview, matrix, lines });
