// What the page holds, and what it says: sentences from one table, with numbers and tokens in their places.

import { byId, element, isolated } from "../../../renderers/page/dom.js";

export const lesson = JSON.parse(byId("content").textContent);

const PARTS = /\{(\w+)\}|\*\*(.+?)\*\*|`(.+?)`/g;

// Nodes and texts; a token stays in its own direction.
export function say(name, values = {}) {
  return fill(lesson.words[name], values);
}

function fill(sentence, values) {
  const found = [];
  let end = 0;
  for (const part of sentence.matchAll(PARTS)) {
    found.push(sentence.slice(end, part.index));
    end = part.index + part[0].length;
    if (part[1]) found.push(values[part[1]]);
    else if (part[2]) found.push(element("strong", {}, ...fill(part[2], values)));
    else found.push(element("code", {}, part[3]));
  }
  return [...found, sentence.slice(end)].filter((each) => each !== "");
}

// The same as a plain text, for names that only a reader of the page's structure sees.
export function write(name, values = {}) {
  const made = element("span", {}, ...say(name, values));
  return made.textContent;
}

export const paragraph = (name, values = {}, attributes = {}) => element("p", attributes, ...say(name, values));

// A token by its position, as everywhere in attnviz: "3 film".
export const token = (at) => element("span", { class: "token" }, `${at} `, isolated(lesson.tokens[at].piece));

export const tokenText = (at) => `${at} ${lesson.tokens[at].piece}`;
