// The views of maps.
import { commandToCopy } from "./command.js";
import { finder } from "./find.js";
import { matrix } from "./matrix.js";
import { overview } from "./overview.js";
import { screen } from "./screen.js";
import { choosers, makers, tools } from "./views.js";

tools.push(commandToCopy);
choosers.push(finder);
Object.assign(makers, { screen, overview, matrix });
