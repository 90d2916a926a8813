// The slider over all acts and the button that plays them, one after the other.

import { TOTAL } from "./acts.js";
import { part } from "./dom.js";

const STEP_MS = 700;

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
