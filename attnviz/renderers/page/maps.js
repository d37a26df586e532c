// The views of maps.
import { commandToCopy } from "./command.js";
import { lines } from "./lines.js";
import { matrix } from "./matrix.js";
import { overview } from "./overview.js";
import { makers, tools } from "./views.js";

tools.push(commandToCopy);
Object.assign(makers, { overview, matrix, lines });
