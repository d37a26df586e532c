// What the page holds, and what it says: sentences from one table, with numbers and tokens in their places.

import { content, element, isolated, say } from "../../../renderers/page/dom.js";

export const lesson = content;

export const paragraph = (name, values = {}, attributes = {}) => element("p", attributes, ...say(name, values));

// A token by its position, as everywhere in attnviz: "3 film".
export const token = (at) => element("span", { class: "token" }, `${at} `, isolated(lesson.tokens[at].piece));

export const tokenText = (at) => `${at} ${lesson.tokens[at].piece}`;
