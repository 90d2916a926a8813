// Looks over slots of text, such as the sentences of a story: a table, sentences down, hops across.

import { element, weight } from "./dom.js";
import { colourTable } from "./colours.js";

/** The table of all acts over the same slots; `current` is the key of the act that is chosen. */
export function slotTable(acts, current, palette) {
  const texts = acts[0].slots.texts;
  const head = element("tr", {}, element("th", { scope: "col", text: "" }));
  for (const act of acts) {
    head.append(element("th", { scope: "col", text: act.title, class: act.key === current ? "current" : "" }));
  }
  const row = (text, weightIn) => {
    const cells = acts.map((act) => {
      const cell = element("td");
      paintHeat(cell, weightIn(act.slots), act.slots.peak, palette);
      return cell;
    });
    return element("tr", {}, element("th", { scope: "row", text }), ...cells);
  };
  const filled = [...texts.keys()].filter((slot) => texts[slot]);
  const rows = filled.map((slot) => row(texts[slot], ({ values }) => values[slot]));
  const empty = texts.length - filled.length;
  if (acts.some(({ slots }) => emptyWeight(slots) > 0)) rows.push(row(`empty slots (${empty})`, emptyWeight));
  return element("table", { class: "slots" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

/** The weight on all slots without a text. */
export function emptyWeight({ values, texts }) {
  return values.reduce((sum, value, slot) => (texts[slot] ? sum : sum + value), 0);
}

/** Write a weight into `cell` and colour it by its share of the `peak`. */
export function paintHeat(cell, value, peak, palette) {
  const table = colourTable(palette);
  const share = peak ? Math.min(1, Math.max(0, value / peak)) : 0;
  const at = 3 * Math.round(share * (table.length / 3 - 1));
  cell.textContent = weight(value);
  cell.style.backgroundColor = `rgb(${table[at]} ${table[at + 1]} ${table[at + 2]})`;
  cell.style.color = inkOn(table.subarray(at, at + 3));
}

/** Black or white, whichever reads better on `rgb`: their contrast is at least 4.5 on any colour (WCAG 2). */
function inkOn(rgb) {
  const [red, green, blue] = Array.from(rgb, (value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}
