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
  const rows = texts.map((text, slot) => {
    const row = element("tr", {}, element("th", { scope: "row", text }));
    for (const act of acts) row.append(heatCell(act.slots.values[slot], act.slots.peak, palette));
    return row;
  });
  return element("table", { class: "slots" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

function heatCell(value, peak, palette) {
  const table = colourTable(palette);
  const share = peak ? Math.max(0, value / peak) : 0;
  const at = 3 * Math.round(share * (table.length / 3 - 1));
  const cell = element("td", { text: weight(value) });
  cell.style.backgroundColor = `rgb(${table[at]} ${table[at + 1]} ${table[at + 2]})`;
  cell.style.color = share > 0.55 ? "#16191f" : "#ffffff";
  return cell;
}
