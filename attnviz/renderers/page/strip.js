// The heads of the same layer, small, above one that is shown large; arrows go to other heads and other layers.
import { isLayered, maps } from "./content.js";
import { byId, element, isolated } from "./dom.js";
import { drawAll, Thumbnail } from "./overview.js";
import { goTo, pictureOf, state } from "./state.js";

const IN_STRIP = "strip-current"; // the one that keeps the focus when the view is made anew
const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }; // layers and heads

// The maps of the layer of the large one, which is among them.
export const mapsBeside = () => pictureOf().maps.filter((number) => maps[number].layer === maps[state.map].layer);

// Of maps whose cells are ready. `rest` is done when none is pointed at. Null where there is no other.
export function strip(numbers, scale, rest) {
  if (numbers.length < 2) return null;
  const [picture, { layer }] = [pictureOf(), maps[state.map]];
  const places = numbers.map((number) => picture.maps.indexOf(number));
  const nameOf = ({ head, title }) => (isLayered(picture) ? String(head) : isolated(title));
  const caption = (place) => [nameOf(maps[picture.maps[place]])];
  const ways = { caption, smallest: Number.POSITIVE_INFINITY, open: showInstead };
  const small = places.map((place) => new Thumbnail(picture, place, scale, ways, rest));
  for (const { button, number } of small) {
    button.tabIndex = number === state.map ? 0 : -1;
    if (number === state.map) button.id = IN_STRIP;
  }
  const name = layer === null ? "other maps" : `heads of layer ${layer}`;
  const box = element("div", { class: "strip", role: "group", "aria-label": name }, ...small.map((one) => one.button));
  box.addEventListener("keydown", (event) => {
    const number = STEPS[event.key] && mapBeside(...STEPS[event.key]);
    if (number === undefined) return;
    event.preventDefault();
    showInstead(number);
  });
  const draw = () => {
    drawAll(small);
    const [left, width] = [byId(IN_STRIP).offsetLeft, byId(IN_STRIP).offsetWidth];
    box.scrollLeft = left + width / 2 - box.clientWidth / 2;
  };
  return { box, draw };
}

function showInstead(number) {
  byId(IN_STRIP).focus(); // so that the one in its place has it
  goTo(number);
}

// The map so many layers and heads further on; undefined where there is none.
function mapBeside(layers, heads) {
  const picture = pictureOf();
  if (!isLayered(picture)) return picture.maps[picture.maps.indexOf(state.map) + heads];
  const { layer, head } = maps[state.map];
  const moved = (name, at, by) => {
    const all = [...new Set(picture.maps.map((number) => maps[number][name]))];
    return all[all.indexOf(at) + by];
  };
  const to = [moved("layer", layer, layers), moved("head", head, heads)];
  return picture.maps.find((number) => maps[number].layer === to[0] && maps[number].head === to[1]);
}
