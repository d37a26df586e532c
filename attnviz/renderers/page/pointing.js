// Over an image: who points at a place of it, or moves there by arrow keys, sees what every head gives from there.
import { bytesOf, Cells } from "./cells.js";
import { storedIn } from "./content.js";
import { byId, content, element, hasRoomBeside, nextFrame, tell, write } from "./dom.js";
import { cellAt, paint } from "./painting.js";
import { overview } from "./pictures.js";
import { Plot } from "./plot.js";
import { said } from "./readout.js";
import { makers, pictureOf, scaleOf } from "./state.js";

const { block, beside, heads: known, first, precision, equal, shares } = content.pointing;
const N_STRONGEST = 3; // heads that are named, with the part of the image that each gives most

makers.overview = (panel) => {
  const view = overview(panel);
  const heads = view.small.filter(({ map }) => known.includes(map.name));
  if (!heads.length) return view;
  const [heading] = panel.children;
  const pointer = new ImagePointer(heads, heading, view.mark);
  if (hasRoomBeside.matches) {
    byId("beside").append(pointer.part);
    byId("readout").before(byId("beside")); // or else it would move while it is pointed at
  } else {
    pointer.part.append(byId("readout"));
    heading.before(pointer.part); // which may take fewer lines for another place, and would move it
  }
  pointer.plot.fit();
  return {
    ...view,
    mark: () => pointer.point(null), // what is chosen by a key is not where the mouse rests
    draw: () => {
      view.draw();
      pointer.plot.fit();
    },
  };
};

class ImagePointer {
  constructor(heads, heading, rest) {
    Object.assign(this, { heads, heading, rest, title: heading.textContent });
    this.before = heads.map(({ cells }) => cells);
    const [{ cells, map }] = heads;
    const none = new Uint8Array(cells.nRows * cells.nColumns); // no cell is allowed, so that only the image is seen
    const image = new Cells(cells.nRows, cells.nColumns, none, none, null, cells.shares);
    image.isOfPairs = true; // which are not hatched
    this.plot = new Plot(image, { ...map, title: write("ui.image") }, scaleOf(), (cell) => this.point(cell));
    const hint = element("p", { class: "hint" }, write("ui.point_at_image"));
    this.part = element("div", { class: "image" }, hint, element("div", {}, this.plot.frame));
    for (const head of heads) {
      head.button.addEventListener("pointermove", (event) => {
        this.point(event.target === head.canvas ? cellAt(head, event) : null);
      });
      head.button.addEventListener("pointerleave", () => this.point(null));
    }
  }

  // The place that is pointed at, or that is chosen: without one, what the picture is of.
  point(cell) {
    const at = cell ?? this.plot.chosen();
    const mark = at && { ...at, alone: true }; // a frame without lines across
    this.plot.over = mark;
    this.plot.show();
    for (const [place, head] of this.heads.entries()) {
      const looks = at ? looksFrom(head, at) : this.before[place];
      Object.assign(head, { cells: looks, lit: mark, over: mark });
      head.images.clear();
      nextFrame(head, () => paint(head));
    }
    this.heading.textContent = at ? write("ui.from_patch", { place: nameOfPart(at, this.plot.cells) }) : this.title;
    if (at) this.tell(at);
    else this.rest();
    this.part.style.minHeight = `${this.part.offsetHeight}px`; // or a map would move away from who points at it
  }

  tell(at) {
    const picture = pictureOf();
    const strongest = this.heads.map(({ cells, number }) => {
      const [[query, key] = [0, 0]] = cells.best(1); // none of the image may get anything
      const title = picture.titles[picture.maps.indexOf(number)];
      const told = `${title} → ${nameOfPart({ query, key }, cells)} (${said(cells, query, key)})`;
      return { weight: cells.at(query, key), told };
    });
    strongest.sort((a, b) => b.weight - a.weight);
    const told = strongest.slice(0, N_STRONGEST).map((each) => each.told);
    const others = beside[partOf(at, this.plot.cells)];
    tell(write("ui.looks_from_patch", { told: told.join(" · ") }), others && write("ui.beside_patches", { others }));
  }
}

const partOf = ({ query, key }, { nColumns }) =>
  Math.floor(query / block) * Math.ceil(nColumns / block) + Math.floor(key / block);

// Of single patches "3,9", of a part of several "2–3,8–9".
function nameOfPart({ query, key }, { nRows, nColumns }) {
  const span = (at, length) => {
    const from = at - (at % block);
    return block === 1 ? at : `${from}–${Math.min(from + block, length) - 1}`;
  };
  return `${span(query, nRows)},${span(key, nColumns)}`;
}

// What a head gives each patch, from one of them: of a part, the same for all of its patches.
function looksFrom({ map, cells: { nRows, nColumns } }, at) {
  const head = known.indexOf(map.name);
  const nParts = beside.length;
  map.looks ??= storedIn(first + head, nParts, nParts, precision);
  const begin = partOf(at, { nColumns }) * nParts;
  const stored = map.looks.constructor.from({ length: nRows * nColumns }, (_, place) => {
    const patch = { query: Math.floor(place / nColumns), key: place % nColumns };
    return map.looks[begin + partOf(patch, { nColumns })];
  });
  const share = new Float32Array(bytesOf(shares[equal[head]]).buffer)[begin / nParts];
  return new Cells(nRows, nColumns, null, stored, precision, new Float32Array(nRows).fill(share));
}
