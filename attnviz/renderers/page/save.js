// What is seen, saved as a picture: every text, shade, line and map where it stands on the screen, as SVG or as PNG.
import { byId, colourOf, element } from "./dom.js";
import { mapOf, pictureOf, state } from "./state.js";
import { SvgPen } from "./svgpen.js";
import { RIGHT_TO_LEFT } from "./text.js";

const ROOM = 16; // pixels around all of it
const SHARP = 2; // pixels of a PNG for each of the screen
const MAX_SIDE = 16_000; // pixels of a canvas, in every browser
const [HEADING, BODY] = [
  ["title", "subtitle"],
  ["view", "legend", "beside"],
];
const LEFT_OUT = "button:not(.word, .chip, .map, .tokens *), .chip[aria-pressed=false], details, select, label, .hint";
const OF_ONE_DIRECTION = /[\p{L}\p{M}\p{N}]+|[^\p{L}\p{M}\p{N}\s]+/gu; // signs beside a word may go the other way
const CUT = ".map span, .tokens button"; // what is too long for its place is cut there

export function saveButtons() {
  const button = (kind, save) =>
    element("button", { type: "button", onclick: save, "aria-label": `save what is seen as ${kind}` }, kind);
  return element("div", { class: "tools" }, "Save as", button("SVG", saveSvg), button("PNG", savePng));
}

function saveSvg() {
  const { width, height, draw } = laidOut();
  const pen = new SvgPen(width, height);
  draw(pen);
  download(new Blob([new XMLSerializer().serializeToString(pen.sheet)], { type: "image/svg+xml" }), "svg");
}

function savePng() {
  const { width, height, draw } = laidOut();
  const scale = Math.min(SHARP, MAX_SIDE / Math.max(width, height));
  const canvas = element("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  draw(pen);
  canvas.toBlob((blob) => download(blob, "png"));
}

function download(blob, kind) {
  const of = state.view === "overview" ? pictureOf().name : `${mapOf().name}-${state.view}`;
  const link = element("a", { href: URL.createObjectURL(blob), download: `${of}.${kind}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  byId("status").textContent = `Saved as ${link.download}.`;
}

// All that is painted, on paper just large enough for it.
function laidOut() {
  const [heading, body] = [HEADING, BODY].map((names) => names.flatMap((name) => [...paintedIn(byId(name))]));
  const items = [...heading, ...body];
  const left = Math.min(...items.map(({ box }) => box.left)) - ROOM;
  const above = Math.max(...heading.map(({ box }) => box.bottom));
  const gap = Math.min(...body.map(({ box }) => box.top)) - above - ROOM; // of what is left out between them
  const top = Math.min(...items.map(({ box }) => box.top)) + gap - ROOM;
  const width = Math.ceil(Math.max(...items.map(({ box }) => box.right)) - left + ROOM);
  const height = Math.ceil(Math.max(...items.map(({ box }) => box.bottom)) - top + ROOM);
  const draw = (pen) => {
    pen.fillStyle = colourOf("--paper");
    pen.fillRect(0, 0, width, height);
    pen.translate(-left, -top);
    for (const item of items) {
      pen.save();
      if (heading.includes(item)) pen.translate(0, gap);
      item.paint(pen);
      pen.restore();
    }
  };
  return { width, height, draw };
}

// Each thing with its box on the screen, what lies behind first.
function* paintedIn(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) =>
    node.matches?.(LEFT_OUT) || (node.checkVisibility && !node.checkVisibility())
      ? NodeFilter.FILTER_REJECT
      : NodeFilter.FILTER_ACCEPT,
  );
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.nodeType === Node.TEXT_NODE) yield* words(node);
    else if (node.tagName === "CANVAS")
      yield { box: node.getBoundingClientRect(), paint: (pen) => repainted(pen, node) };
    else if (node.tagName === "line") yield line(node);
    else yield* grounds(node);
  }
}

function repainted(pen, canvas) {
  const { left, top, width, height } = canvas.getBoundingClientRect();
  pen.imageSmoothingEnabled = false;
  if (canvas.paintOn) {
    pen.translate(left, top);
    canvas.paintOn(pen);
  } else {
    pen.drawImage(canvas, left, top, width, height);
    pen.strokeStyle = colourOf("--rule");
    pen.strokeRect(left, top, width, height);
  }
}

// The shade of a word, and the frame of one that is marked; of each line that it stands on.
function* grounds(node) {
  const { backgroundColor, boxShadow } = getComputedStyle(node);
  const isShaded = !/^rgba\(.*, 0\)$|^transparent$|\/ 0\)$/.test(backgroundColor);
  if (!isShaded && boxShadow === "none") return;
  for (const box of node.getClientRects()) {
    yield {
      box,
      paint: (pen) => {
        pen.fillStyle = backgroundColor;
        if (isShaded) pen.fillRect(box.left, box.top, box.width, box.height);
        pen.lineWidth = 2;
        pen.strokeStyle = boxShadow.split(" 0px")[0];
        if (boxShadow !== "none") pen.strokeRect(box.left + 1, box.top + 1, box.width - 2, box.height - 2);
      },
    };
  }
}

// Word by word, where the browser has put them.
function* words(node) {
  const style = getComputedStyle(node.parentElement);
  const range = document.createRange();
  const parts = RIGHT_TO_LEFT.test(node.textContent) ? OF_ONE_DIRECTION : /\S+/g;
  for (const { index, 0: word } of node.textContent.matchAll(parts)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const [box] = range.getClientRects();
    if (!box?.width) continue;
    const place = node.parentElement.closest(CUT)?.getBoundingClientRect() ?? box;
    if (box.left >= place.right) continue;
    const paint = (pen) => {
      if (box.right > place.right) {
        pen.beginPath();
        pen.rect(place.left, place.top, place.width, place.height);
        pen.clip();
      }
      pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
      pen.fillStyle = style.color;
      pen.textBaseline = "alphabetic";
      const { fontBoundingBoxAscent: above, fontBoundingBoxDescent: below } = pen.measureText(word);
      pen.fillText(word, box.left, box.top + (box.height * above) / (above + below));
    };
    yield { box: box.right > place.right ? place : box, paint };
  }
}

function line(node) {
  const box = node.ownerSVGElement.getBoundingClientRect();
  const { width, height } = node.ownerSVGElement.viewBox.baseVal;
  const place = (x, y) => [box.left + (x * box.width) / width, box.top + (y * box.height) / height];
  const style = getComputedStyle(node);
  const paint = (pen) => {
    pen.globalAlpha = style.strokeOpacity * getComputedStyle(node.ownerSVGElement).opacity;
    pen.strokeStyle = style.stroke;
    pen.lineWidth = Number.parseFloat(style.strokeWidth);
    pen.beginPath();
    pen.moveTo(...place(node.x1.baseVal.value, node.y1.baseVal.value));
    pen.lineTo(...place(node.x2.baseVal.value, node.y2.baseVal.value));
    pen.stroke();
  };
  return { box, paint };
}
