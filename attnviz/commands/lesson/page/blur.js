// Averaging blurs: the same row with scores divided by more or less. The picture follows.

import { byId, say } from "../../../renderers/page/dom.js";
import { distance, effectiveKeys, mean } from "./arithmetic.js";
import { attendChosen, change, choice, chosenHead, onChange, WHICH_ROW } from "./choice.js";
import { decimal } from "./parts.js";
import { paragraph, token } from "./phrases.js";

export function blurSection() {
  const [slider, divided] = ["temperature", "divided"].map(byId);
  slider.addEventListener("input", () => change({ temperature: 2 ** Number(slider.value) }));
  onChange([...WHICH_ROW, "temperature"], () => {
    const head = chosenHead();
    const work = attendChosen();
    const { temperature } = choice;
    const values = {
      factor: decimal(temperature, 2),
      divisor: decimal(temperature * Math.sqrt(head.size), 2),
      query: token(choice.query),
      n: decimal(effectiveKeys(work.weights), 2),
      distance: decimal(distance(work.output, mean(head.values))),
    };
    divided.replaceChildren(...say("blur.slider", values));
    slider.value = Math.log2(temperature);
    slider.setAttribute("aria-valuetext", divided.textContent);
    byId("blurred").replaceChildren(paragraph("blur.effective", values), paragraph("blur.distance", values));
  });
}
