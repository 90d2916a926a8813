// How it is shown: opacity, colour map, outline, cells, tabs, theme and help.

import { COLOUR_MAPS, colourTable } from "./colours.js";
import { element, part } from "./dom.js";

const THEMES = ["", "light", "dark"];
const WORDS = { cividis: "cividis (for the colour-blind)" };

export class Controls {
  constructor(root, store) {
    Object.assign(this, { root, store });
    this.opacity = part(root, "opacity");
    this.palette = part(root, "palette");
    this.legend = part(root, "legend");
    this.help = part(root, "help");
    this.opacity.addEventListener("input", () => store.set({ opacity: Number(this.opacity.value) / 100 }));
    this.palette.append(...COLOUR_MAPS.map((name) => element("option", { value: name, text: WORDS[name] ?? name })));
    this.palette.addEventListener("change", () => store.set({ palette: this.palette.value }));
    for (const name of ["outline", "cells"]) {
      part(root, name).addEventListener("change", (event) => store.set({ [name]: event.target.checked }));
    }
    for (const tab of root.querySelectorAll("[data-mode-tab]")) {
      tab.addEventListener("click", () => store.set({ mode: tab.dataset.modeTab }));
    }
    this.inputTabs = part(root, "input-tabs");
    part(root, "theme").addEventListener("click", () => this.#nextTheme());
    part(root, "help-button").addEventListener("click", () => this.toggle("help"));
  }

  show() {
    const { opacity, palette, outline, cells, mode, reads } = this.store.state;
    this.opacity.value = String(Math.round(100 * opacity));
    this.palette.value = palette;
    part(this.root, "outline").checked = outline;
    part(this.root, "cells").checked = cells;
    for (const tab of this.root.querySelectorAll("[data-mode-tab]")) {
      const isOpen = tab.dataset.modeTab === mode && (tab.dataset.reads ?? reads) === reads;
      tab.setAttribute("aria-pressed", String(isOpen));
    }
    this.#drawLegend(palette);
  }

  /** Offer a tab for each kind of `things` that panels make, such as stories. */
  offer(things) {
    const tab = (reads) =>
      element("button", {
        type: "button",
        text: reads.charAt(0).toUpperCase() + reads.slice(1),
        "data-mode-tab": "input",
        "data-reads": reads,
        onclick: () => this.store.set({ mode: "input", reads }),
      });
    this.inputTabs.replaceChildren(...things.map(tab));
  }

  toggle(name) {
    if (name !== "help") this.store.set({ [name]: !this.store.state[name] });
    else if (this.help.open) this.help.close();
    else this.help.showModal();
  }

  #drawLegend(palette) {
    if (this.drawn === palette) return;
    this.drawn = palette;
    const table = colourTable(palette);
    const count = table.length / 3;
    const pixels = new ImageData(count, 1);
    for (let level = 0; level < count; level++)
      pixels.data.set([...table.subarray(3 * level, 3 * level + 3), 255], 4 * level);
    Object.assign(this.legend, { width: count, height: 1 });
    this.legend.getContext("2d").putImageData(pixels, 0, 0);
  }

  /** As the system has it, light, dark, and around again. */
  #nextTheme() {
    const next = THEMES[(THEMES.indexOf(this.root.dataset.theme ?? "") + 1) % THEMES.length];
    this.root.dataset.theme = next;
    part(this.root, "theme").title = `Theme: ${next || "as the system has it"}`;
  }
}
