// Rows of small buttons, brought up to date in place: what is painted again loses neither its focus nor a press.

import { element } from "./dom.js";

/** Make `row` hold one button for each of `wanted`: {text, title, onclick, pressed (none: no toggle), colour}. */
export function showChips(row, wanted) {
  const hadFocus = row.contains(document.activeElement);
  while (row.childElementCount > wanted.length) row.lastElementChild.remove();
  wanted.forEach(({ text, title, onclick, pressed, colour }, number) => {
    const chip = row.children[number] ?? row.appendChild(element("button", { type: "button", class: "chip" }));
    if (chip.textContent !== text) chip.textContent = text;
    Object.assign(chip, { title, onclick });
    chip.setAttribute("aria-label", title);
    if (pressed !== undefined) chip.setAttribute("aria-pressed", String(pressed));
    if (colour) chip.style.setProperty("--mark", `rgb(${colour.join(" ")})`);
  });
  if (hadFocus && !row.contains(document.activeElement)) row.lastElementChild?.focus(); // its own button has gone
}
