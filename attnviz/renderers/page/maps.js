// The views of maps.
import { lines } from "./lines.js";
import { matrix } from "./matrix.js";
import { overview } from "./overview.js";
import { saveButtons } from "./save.js";
import { makers, tools } from "./views.js";

tools.push(saveButtons);
Object.assign(makers, { overview, matrix, lines });
