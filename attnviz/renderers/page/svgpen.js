// What a canvas is drawn with, as far as pictures here need it, for SVG: texts stay texts, cells one pixel each.
import { drawingIn, element, sheet } from "./dom.js";

const ANCHORS = { left: "start", right: "end", center: "middle" };
const BASELINES = { alphabetic: "auto", middle: "central" };
const START = { fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, textAlign: "left" };

export class SvgPen {
  constructor(width, height) {
    Object.assign(this, START, { kept: [], font: "10px sans-serif", textBaseline: "alphabetic" });
    this.sheet = sheet();
    this.place = this.sheet.documentElement;
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) {
      this.place.setAttribute(name, value);
    }
    this.path = "";
    this.nDefined = 0;
    this.ruler = element("canvas").getContext("2d");
  }

  add(tag, attributes, ...children) {
    const made = drawingIn(this.sheet, tag, attributes, ...children);
    this.place.append(made);
    return made;
  }

  // What follows is moved, turned or cut: in a group of its own, until what was before is restored.
  group(attributes) {
    this.place = this.add("g", attributes);
  }

  save() {
    const { place, fillStyle, strokeStyle, lineWidth, globalAlpha, textAlign, textBaseline, font } = this;
    this.kept.push({ place, fillStyle, strokeStyle, lineWidth, globalAlpha, textAlign, textBaseline, font });
  }

  restore() {
    Object.assign(this, this.kept.pop());
  }

  translate(x, y) {
    this.group({ transform: `translate(${x} ${y})` });
  }

  rotate(angle) {
    this.group({ transform: `rotate(${(angle * 180) / Math.PI})` });
  }

  beginPath() {
    this.path = "";
  }

  moveTo(x, y) {
    this.path += `M${x} ${y}`;
  }

  lineTo(x, y) {
    this.path += `L${x} ${y}`;
  }

  rect(x, y, width, height) {
    this.path += `M${x} ${y}h${width}v${height}h${-width}z`;
  }

  clip() {
    const id = this.defined("clipPath", {}, drawingIn(this.sheet, "path", { d: this.path }));
    this.group({ "clip-path": `url(#${id})` });
  }

  stroke() {
    this.add("path", { d: this.path, ...this.stroked() });
  }

  fillRect(x, y, width, height) {
    this.add("rect", { x, y, width, height, fill: this.fillStyle, "fill-opacity": this.globalAlpha });
  }

  strokeRect(x, y, width, height) {
    this.add("rect", { x, y, width, height, fill: "none", ...this.stroked() });
  }

  stroked() {
    return { stroke: this.strokeStyle, "stroke-width": this.lineWidth, "stroke-opacity": this.globalAlpha };
  }

  fillText(text, x, y) {
    this.ruler.font = this.font;
    const [, weight = "400", size, family] = /^(?:(\d+) )?([\d.]+px) (.*)$/.exec(this.ruler.font);
    const look = { "font-family": family, "font-size": size, "font-weight": weight, fill: this.fillStyle };
    const where = { x, y, "text-anchor": ANCHORS[this.textAlign], "dominant-baseline": BASELINES[this.textBaseline] };
    this.add("text", { ...where, ...look }, text);
  }

  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  drawImage(image, x, y, width, height) {
    this.add("image", { x, y, width, height, opacity: this.globalAlpha, ...pictured(image) });
  }

  createPattern(tile) {
    const { width, height } = tile;
    const id = this.defined(
      "pattern",
      { width, height, patternUnits: "userSpaceOnUse" },
      drawingIn(this.sheet, "image", { width, height, ...pictured(tile) }),
    );
    return `url(#${id})`;
  }

  defined(tag, attributes, child) {
    const id = `${tag}-${this.nDefined++}`;
    this.add(tag, { ...attributes, id }, child);
    return id;
  }
}

function pictured(image) {
  const canvas = element("canvas", { width: image.width, height: image.height });
  canvas.getContext("2d").drawImage(image, 0, 0);
  return { href: canvas.toDataURL(), preserveAspectRatio: "none", "image-rendering": "pixelated" };
}
