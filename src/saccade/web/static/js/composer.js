// Composing a scene: digits are dragged on the picture, by pointer or by keys, and changed in the panel.

import { COLOURS } from "./colours.js";
import { button, options, part } from "./dom.js";
import { EXAMPLES, fits } from "./examples.js";
import { changed, LARGEST, randomScene, SIDE, SMALLEST, VARIANTS } from "./scene.js";

const DIGIT_PARTS = ["digit-list", "digit-fields", "digit-size", "colour-list", "handwriting", "remove"];
const SCENE_PARTS = ["add-list", "background", "shuffle", "example"];
const HANDLE = 5; // pixels of the picture around the corner that resizes

export class Composer {
  #drag = null;

  constructor(root, store) {
    this.store = store;
    this.parts = Object.fromEntries([...DIGIT_PARTS, ...SCENE_PARTS].map((name) => [name, part(root, name)]));
    const { parts } = this;
    Object.assign(parts["digit-size"], { min: SMALLEST, max: LARGEST });
    parts["digit-size"].addEventListener("input", () => this.#resize(Number(parts["digit-size"].value)));
    parts.handwriting.addEventListener("click", () => this.change({ glyph: (this.selected.glyph + 1) % VARIANTS }));
    parts.remove.addEventListener("click", () => this.remove());
    parts.shuffle.addEventListener("click", () => this.shuffle());
    parts.example.addEventListener("change", () => this.#choose(EXAMPLES[parts.example.value]));
    parts.background.addEventListener("change", () => this.#set({ background: parts.background.value }));
    for (const [name, rgb] of Object.entries(COLOURS)) {
      const names = { class: "swatch", title: name, "aria-label": name, "data-colour": name };
      const swatch = button("", () => this.change({ colour: name }), names);
      swatch.style.backgroundColor = `rgb(${rgb.join(" ")})`;
      parts["colour-list"].append(swatch);
    }
  }

  get scene() {
    return this.store.state.scene;
  }

  /** Whether the picture is a scene whose digits can be changed. */
  get isOpen() {
    return this.store.state.mode === "scene";
  }

  get selected() {
    return this.scene.digits[this.store.state.selected] ?? null;
  }

  /** Make the picture of a stage answer to the pointer. */
  attach(stage) {
    const canvas = stage.element;
    canvas.addEventListener("pointerdown", (event) => this.#press(event, stage));
    canvas.addEventListener("pointermove", (event) => this.#move(event, stage));
    for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, () => (this.#drag = null));
  }

  /** Offer the backgrounds that can be rendered. */
  offer(backgrounds) {
    const words = { distractors: "coloured clutter", clutter: "grey clutter" };
    for (const name of backgrounds) words[name] ??= name.replace("photo:", "photo: ");
    this.parts.background.replaceChildren(...options(backgrounds, words));
    this.drawable = Object.keys(EXAMPLES).filter((name) => backgrounds.includes(EXAMPLES[name].scene.background));
    this.parts.example.replaceChildren(...options(["", ...this.drawable], { "": "Example …" }));
  }

  /** Put an example on the canvas that is like the scenes of training (see examples.js); one that is there stays. */
  fit(trained) {
    if (!fits(trained, this.scene)) this.#choose(this.#fitting(trained));
  }

  hasFitting(trained) {
    return Boolean(this.#fitting(trained));
  }

  #fitting(trained) {
    return EXAMPLES[this.drawable?.find((name) => fits(trained, EXAMPLES[name].scene))];
  }

  /** Bring the panel up to date; new digits will be such as the model in front has learned from. */
  show(trained) {
    this.trained = trained;
    const { digits, background } = this.scene;
    const { parts, selected } = this;
    const chosen = this.store.state.selected;
    showChips(
      parts["digit-list"],
      digits.map(({ digit, colour }, number) => ({
        text: String(digit),
        title: `Select the ${digit}`,
        onclick: () => this.store.set({ selected: number }),
        pressed: number === chosen,
        colour: COLOURS[colour],
      })),
    );
    const offered = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].filter(
      (digit) => trained?.repeats || digits.every((other) => other.digit !== digit),
    );
    showChips(
      parts["add-list"],
      offered.map((digit) => ({ text: `+${digit}`, title: `Add a ${digit}`, onclick: () => this.add(digit) })),
    );
    parts["digit-fields"].disabled = selected === null;
    if (selected) parts["digit-size"].value = String(selected.size);
    for (const swatch of parts["colour-list"].children)
      swatch.setAttribute("aria-pressed", String(swatch.dataset.colour === selected?.colour));
    parts.background.value = background;
    const name = Object.keys(EXAMPLES).find((key) => EXAMPLES[key].scene === this.scene);
    parts.example.value = name ?? ""; // a scene that was changed is an example no more
  }

  /** Select the digit that is asked for, if it is there: what is changed next is most likely that one. */
  select(question) {
    const number = this.scene.digits.findIndex(({ digit }) => String(digit) === question);
    if (number >= 0) this.store.state.selected = number;
  }

  change(changes) {
    if (!this.selected) return;
    const digits = [...this.scene.digits];
    digits[this.store.state.selected] = changed(this.selected, changes);
    this.#set({ digits });
  }

  /** Put a digit where there is most room, in a colour of its turn. */
  add(digit) {
    const { digits } = this.scene;
    const size = 26; // of any kind of scene
    const places = [];
    for (let y = 0; y <= SIDE - size; y += 4) for (let x = 0; x <= SIDE - size; x += 4) places.push({ x, y });
    const room = ({ x, y }) =>
      Math.min(
        ...digits.map((other) =>
          Math.max(other.x - x - size, x - other.x - other.size, other.y - y - size, y - other.y - other.size),
        ),
        99,
      );
    const best = places.reduce((one, two) => (room(two) > room(one) ? two : one));
    const colours = this.trained?.colours ?? Object.keys(COLOURS);
    const colour = colours[digits.length % colours.length];
    this.store.set({ selected: digits.length });
    this.#set({ digits: [...digits, { digit, glyph: 0, ...best, size, colour }] });
  }

  remove() {
    if (!this.selected) return;
    const { selected } = this.store.state;
    this.#set({ digits: this.scene.digits.filter((_, number) => number !== selected) });
    this.store.set({ selected: Math.max(0, selected - 1) });
  }

  shuffle() {
    if (!this.drawable) return; // a page of records has nobody to show a scene to
    const scene = randomScene(this.scene.seed + 1, this.scene.background, this.trained);
    this.store.set({ scene, isOwn: false, selected: 0, question: String(scene.digits[0].digit), mode: "scene" });
  }

  #choose(example) {
    if (!example) return;
    const { scene, question } = example;
    const asked = scene.digits.findIndex(({ digit }) => String(digit) === question);
    this.store.set({ scene, question, isOwn: false, selected: Math.max(0, asked) });
  }

  /** Select the next digit, or with -1 the one before. */
  cycle(by) {
    const count = this.scene.digits.length;
    if (count) this.store.set({ selected: (this.store.state.selected + by + count) % count });
  }

  /** Move the selected digit. */
  nudge(x, y) {
    if (this.selected) this.change({ x: this.selected.x + x, y: this.selected.y + y });
  }

  /** Grow or shrink it around its middle. */
  grow(by) {
    if (this.selected) this.#resize(this.selected.size + by);
  }

  recolour() {
    const names = Object.keys(COLOURS);
    if (this.selected) this.change({ colour: names[(names.indexOf(this.selected.colour) + 1) % names.length] });
  }

  #resize(size) {
    const shift = (this.selected.size - size) / 2;
    this.change({ size, x: this.selected.x + shift, y: this.selected.y + shift });
  }

  #set(changes) {
    this.store.set({ scene: { ...this.scene, ...changes }, isOwn: true });
  }

  #press(event, stage) {
    if (!this.isOpen) return;
    const { x, y } = stage.at(event);
    const current = this.selected;
    const resizing = current && Math.hypot(current.x + current.size - x, current.y + current.size - y) < HANDLE;
    const hit = resizing ? this.store.state.selected : this.#hit(x, y);
    if (hit === null) return;
    event.preventDefault();
    stage.element.focus({ preventScroll: true });
    stage.element.setPointerCapture(event.pointerId);
    const digit = this.scene.digits[hit];
    this.#drag = { resizing, x: x - digit.x, y: y - digit.y };
    this.store.set({ selected: hit });
  }

  #move(event, stage) {
    if (!this.isOpen) return;
    const { x, y } = stage.at(event);
    stage.element.style.cursor = this.#drag || this.#hit(x, y) !== null ? "grab" : "";
    if (!this.#drag) return;
    if (this.#drag.resizing) this.change({ size: Math.max(x - this.selected.x, y - this.selected.y) });
    else this.change({ x: x - this.#drag.x, y: y - this.#drag.y });
  }

  /** The number of the digit under a point, the one in front first; null for none. */
  #hit(x, y) {
    const hit = this.scene.digits.findLastIndex(
      (digit) => x >= digit.x && y >= digit.y && x < digit.x + digit.size && y < digit.y + digit.size,
    );
    return hit < 0 ? null : hit;
  }
}

/** Make `row` hold one button for each of `wanted`: {text, title, onclick, pressed (none: no toggle), colour}. */
function showChips(row, wanted) {
  const hadFocus = row.contains(document.activeElement);
  while (row.childElementCount > wanted.length) row.lastElementChild.remove();
  wanted.forEach(({ text, title, onclick, pressed, colour }, number) => {
    const chip = row.children[number] ?? row.appendChild(button(text, null, { class: "chip" }));
    if (chip.textContent !== text) chip.textContent = text;
    Object.assign(chip, { title, onclick });
    chip.setAttribute("aria-label", title);
    if (pressed !== undefined) chip.setAttribute("aria-pressed", String(pressed));
    if (colour) chip.style.setProperty("--mark", `rgb(${colour.join(" ")})`);
  });
  if (hadFocus && !row.contains(document.activeElement)) row.lastElementChild?.focus(); // its own button has gone
}
