// The views of maps.
import { commandToCopy } from "./command.js";
import { finder } from "./find.js";
import { ofTokens } from "./hiding.js";
import { lines } from "./lines.js";
import { matrix } from "./matrix.js";
import { overview } from "./overview.js";
import { choosers, hiding, makers, tools } from "./views.js";

tools.push(commandToCopy);
choosers.push(ofTokens.choose, finder);
Object.assign(hiding, ofTokens);
Object.assign(makers, { overview, matrix, lines });
