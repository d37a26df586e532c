// The only script that stands in a page as it is: it makes elements of the others, which the policy knows by their hash.
const packed = atob(document.getElementById("packed").textContent);
const bytes = Uint8Array.from(packed, (sign) => sign.charCodeAt(0));
const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
for (const [tag, attributes, text] of await new Response(stream).json()) {
  document.head.append(Object.assign(document.createElement(tag), attributes, { textContent: text }));
}
