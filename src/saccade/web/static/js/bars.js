// Rows of labelled bars: confidences and scores.

import { element, percent } from "./dom.js";

/** A list of {label, value (0..1), own}; the own row stands out. */
export function barList(rows, name) {
  const items = rows.map(({ label, value, own }) => {
    const fill = element("span", { class: "fill" });
    fill.style.inlineSize = `${100 * Math.min(1, Math.max(0, value))}%`;
    return element(
      "li",
      { class: own ? "own" : "" },
      element("span", { class: "label", text: label, title: label }),
      element("span", { class: "track" }, fill),
      element("span", { class: "number", text: percent(value) }),
    );
  });
  return element("ul", { class: "bar-list", "aria-label": name }, ...items);
}
