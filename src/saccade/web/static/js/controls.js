// How it is shown: opacity, colour map, outline, cells, tabs, theme and help; the slider over the looks; all keys.

import { TOTAL } from "./acts.js";
import { COLOUR_MAPS, gradient } from "./colours.js";
import { button, options, part } from "./dom.js";

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
    this.palette.append(...options(COLOUR_MAPS, WORDS));
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
    this.legend.style.backgroundImage = gradient(palette);
  }

  /** Offer a tab for each kind of `things` that panels make, such as stories. */
  offer(things) {
    const tabs = things.map((reads) => {
      const open = () => this.store.set({ mode: "input", reads });
      const name = reads.charAt(0).toUpperCase() + reads.slice(1);
      return button(name, open, { "data-mode-tab": "input", "data-reads": reads });
    });
    this.inputTabs.replaceChildren(...tabs);
  }

  toggle(name) {
    if (name !== "help") this.store.set({ [name]: !this.store.state[name] });
    else if (this.help.open) this.help.close();
    else this.help.showModal();
  }

  /** As the system has it, light, dark, and around again. */
  #nextTheme() {
    const next = THEMES[(THEMES.indexOf(this.root.dataset.theme ?? "") + 1) % THEMES.length];
    this.root.dataset.theme = next;
    part(this.root, "theme").title = `Theme: ${next || "as the system has it"}`;
  }
}

const STEP_MS = 700;

/** The slider over all acts and the button that plays them, one after the other. */
export class Player {
  #timer = null;

  constructor(root, store) {
    this.store = store;
    this.slider = part(root, "act-slider");
    this.name = part(root, "act-name");
    this.button = part(root, "play");
    this.slider.addEventListener("input", () => this.#choose(Number(this.slider.value)));
    this.button.addEventListener("click", () => this.toggle());
  }

  /** The acts of all lenses in one order: those of the richest lens first, the total at the end. */
  static merged(lenses) {
    const titles = new Map();
    for (const { acts } of [...lenses].sort((one, two) => two.acts.length - one.acts.length)) {
      for (const act of acts) if (act.key !== TOTAL && !titles.has(act.key)) titles.set(act.key, act);
    }
    if (lenses.some(({ acts }) => acts.some(({ key }) => key === TOTAL))) titles.set(TOTAL, { title: "total" });
    return titles;
  }

  /** Show where `current` stands among `titles` (key → {title, place}). */
  show(titles, current) {
    this.keys = [...titles.keys()];
    this.slider.max = String(Math.max(0, this.keys.length - 1));
    this.slider.value = String(Math.max(0, this.keys.indexOf(current)));
    this.slider.disabled = this.keys.length < 2;
    // What plays can be paused, even where nothing is left to play.
    this.button.disabled = this.slider.disabled && this.#timer === null;
    const { title, place } = titles.get(current) ?? { title: "" };
    const number = `(${Number(this.slider.value) + 1} of ${this.keys.length})`;
    this.name.textContent = place ? `${title} · ${place}` : title && `${title} ${number}`;
    this.slider.setAttribute("aria-valuetext", title);
  }

  /** Go on by `steps`, stopping at the ends. */
  move(steps) {
    this.#choose(Math.min(this.keys.length - 1, Math.max(0, Number(this.slider.value) + steps)));
  }

  /** Play or pause; the button says what it would do next, to the eye and to the ear. */
  toggle() {
    if (this.button.disabled) return;
    const playing = this.#timer === null;
    this.button.textContent = playing ? "Pause" : "Play";
    this.button.setAttribute("aria-label", `${this.button.textContent} the looks`);
    clearInterval(this.#timer);
    this.#timer = null;
    if (!playing) return;
    const next = () => this.#choose((Number(this.slider.value) + 1) % this.keys.length);
    next();
    this.#timer = setInterval(next, STEP_MS);
  }

  #choose(number) {
    if (this.keys[number] !== undefined) this.store.set({ act: this.keys[number] });
  }
}

/**
 * All that the pointer does, by keys; those that change a digit want the picture in focus. `does` names what keys do:
 * composer, player, ask(digit), toggle(name).
 */
export function listenForKeys(root, does) {
  // A page of its own hears every key; inside a report only those that are meant for it, so that space still scrolls.
  const ears = root.parentElement === document.body ? document : root;
  ears.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.matches("input, select, textarea")) return;
    const onScene = does.composer.isOpen && event.target.matches("[data-part=stage]");
    const action = { ...pageKeys(does), ...(onScene && stageKeys(does, event.shiftKey ? 8 : 2)) }[event.key];
    if (!action || (event.key === " " && event.target.matches("button"))) return;
    event.preventDefault();
    action();
  });
}

function stageKeys({ composer }, far) {
  return {
    ArrowLeft: () => composer.nudge(-far, 0),
    ArrowRight: () => composer.nudge(far, 0),
    ArrowUp: () => composer.nudge(0, -far),
    ArrowDown: () => composer.nudge(0, far),
    "+": () => composer.grow(2),
    "-": () => composer.grow(-2),
    "]": () => composer.cycle(1),
    "[": () => composer.cycle(-1),
    c: () => composer.recolour(),
    Delete: () => composer.remove(),
    Backspace: () => composer.remove(),
  };
}

function pageKeys({ player, composer, toggle, ask }) {
  const digits = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"].map((digit) => [digit, () => ask(digit)]);
  return {
    ...Object.fromEntries(digits),
    " ": () => player.toggle(),
    ",": () => player.move(-1),
    ".": () => player.move(1),
    n: () => composer.shuffle(),
    o: () => toggle("outline"),
    "?": () => toggle("help"),
  };
}
