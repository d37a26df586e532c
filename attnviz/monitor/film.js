// A film of heads: a picture of all of them for each step, and a slider.

import { byId, content, loadFonts } from "../renderers/page/dom.js";

function showFrame() {
  const [step, picture] = content[byId("slider").value];
  byId("frame").src = `data:image/png;base64,${picture}`;
  byId("frame").alt = byId("step").textContent = step;
}

await loadFonts();
byId("title").textContent = document.title;
for (const name of ["slider", "frame"]) byId(name).style.width = "min(100%, 40rem)";
byId("slider").max = content.length - 1;
byId("slider").addEventListener("input", showFrame);
showFrame();
