// A brush for attention: it erases or paints the weights of the look that is shown, and the model answers again.
//
// The weights of a softmax keep their sum: the page scales those that are left. Gates are never scaled.
// The brush works by pointer, and by keys when the picture has the focus: arrows move it from cell to cell, space erases,
// shift and space paint, escape puts it away. A live region says where it is and what it did.

import { button, element, options, percent, weight } from "./dom.js";
import { cellAt, centreOf, clamp } from "./frames.js";

const TOOLS = { off: "Off", erase: "Erase", paint: "Paint" };
const SIZES = { small: 0.03, medium: 0.07, large: 0.14 }; // radius as a share of the picture's longer side
const DIGITS = 6; // of a weight that is sent
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }; // columns, rows

export class Brush {
  tool = "off";
  #base = null; // name of a look → its unedited act
  #edits = new Map(); // name of a look → its weights, before they are scaled
  #last = null; // the point where the stroke is; null where there is none
  #cell = null; // {row, column} where the keys have moved the brush; null before the first key

  /**
   * `on` holds what to do: act(key) to show another look, edit(attention or null) to ask again, hover(point) to show the
   * brush there.
   */
  constructor(on) {
    this.on = on;
    const tools = Object.entries(TOOLS).map(([name, text]) => button(text, () => this.#choose(name), { "data-tool": name }));
    this.tools = element("span", { class: "segments", role: "group", "aria-label": "brush" }, ...tools);
    this.size = select("brush size", Object.keys(SIZES), "medium");
    this.later = select("later looks", ["recomputed", "frozen"], "recomputed", () => this.#edits.size && this.#ask());
    this.reset = button("Reset", () => this.#reset(), { "data-part": "brush-reset" });
    this.told = element("p", { class: "edited", role: "status", "data-part": "edited" });
    this.spoken = element("p", { class: "spoken", role: "status", "aria-live": "polite", "data-part": "brush-spoken" });
    this.laterField = element("label", {}, "later looks ", this.later);
    const [label, size] = [element("span", { class: "label", text: "Edit attention" }), element("label", {}, "size ", this.size)];
    this.row = element("div", { class: "brush-row" }, label, this.tools, size, this.laterField, this.reset);
    this.element = element("div", { class: "brush", "data-part": "brush" }, this.row, this.told, this.spoken);
  }

  /** Hear the pointer on the picture of `stage` before anybody else does. */
  attach(stage) {
    this.stage = stage;
    const canvas = stage.element;
    canvas.addEventListener("pointerdown", (event) => this.#press(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, () => (this.#last = null));
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  /** What keys do on the picture now, in words; nothing where the brush is off. */
  get keys() {
    return this.tool === "off" ? "" : "arrow keys move the brush, space erases, shift and space paint, escape ends";
  }

  /** Forget what was edited: something else is about to be asked. */
  clear() {
    this.#base = null;
    this.#edits.clear();
    this.#last = this.#cell = null;
    this.spoken.textContent = "";
  }

  /** Take the acts of a new view; one that was not edited is what edits begin from. `isLive`: it can be asked again. */
  take(view, acts, isLive) {
    this.names = isLive ? (view.editable ?? []) : [];
    if (!view.edited) {
      this.clear();
      this.#base = new Map(acts.filter(({ look, map }) => map && this.names.includes(look)).map((act) => [act.look, act]));
    }
    this.row.hidden = !this.names.length;
    this.laterField.hidden = this.names.length < 2;
    this.told.textContent = editedText(view.edited);
    this.told.hidden = !view.edited;
    this.reset.disabled = !view.edited;
    if (!this.names.length) this.tool = "off";
    this.#show();
  }

  /** Nothing can be edited where there is no answer. */
  refuse() {
    this.clear();
    this.row.hidden = this.told.hidden = true;
    this.names = [];
  }

  /** What `act` shows under the pointer, as a ring {x, y, radius} in pixels of the picture; null where it is off. */
  ring(act, pointer) {
    return pointer && this.#isOn(act) ? { ...pointer, radius: this.#radius() } : null;
  }

  /** Take note of the act that is shown. */
  shows(act) {
    this.act = act;
    this.stage.element.style.touchAction = this.tool === "off" ? "" : "none";
  }

  #isOn(act) {
    return this.tool !== "off" && Boolean(act?.map) && Boolean(this.#base?.has(act.look));
  }

  #radius() {
    return SIZES[this.size.value] * Math.max(this.stage.size.width, this.stage.size.height);
  }

  /** A brush changes a look, not the total: the last look that can be edited is shown. */
  #choose(tool) {
    this.tool = tool;
    this.#show();
    this.on.act(tool === "off" || this.names.includes(this.act?.look) ? this.act?.key : this.names.at(-1));
  }

  #show() {
    for (const button of this.tools.children) button.setAttribute("aria-pressed", String(button.dataset.tool === this.tool));
  }

  #press(event) {
    if (this.tool === "off") return;
    event.preventDefault();
    event.stopImmediatePropagation(); // no digit is dragged meanwhile
    if (!this.#isOn(this.act)) return;
    this.stage.element.setPointerCapture(event.pointerId);
    this.#touch(this.stage.at(event));
  }

  #move(event) {
    if (this.tool === "off") return;
    event.stopImmediatePropagation();
    this.stage.element.style.cursor = "crosshair";
    if (this.#last) this.#touch(this.stage.at(event));
  }

  /** The keys of the brush; the digits of a scene and the player would hear the same ones. */
  #key(event) {
    const step = STEPS[event.key];
    if (this.tool === "off" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!step && event.key !== " " && event.key !== "Escape") return;
    event.preventDefault();
    if (event.key === "Escape") this.#choose("off");
    else if (!this.#isOn(this.act)) this.#say("this look cannot be edited");
    else if (step) this.#go(...step);
    else this.#change(event.shiftKey ? "paint" : "erase");
  }

  /** Move the brush by cells, from where the keys left it or else from the peak. */
  #go(across, down) {
    const { grid, values } = this.act.map;
    const [rows, columns] = grid;
    const peak = values.indexOf(Math.max(...values));
    const from = this.#cell ?? { row: Math.floor(peak / columns), column: peak % columns };
    const isFirst = !this.#cell; // the first key shows where the brush is
    this.#cell = {
      row: clamp(from.row + (isFirst ? 0 : down), rows - 1),
      column: clamp(from.column + (isFirst ? 0 : across), columns - 1),
    };
    this.on.hover(this.#centre());
    this.#say(this.#where());
  }

  /** Erase or paint under the brush. */
  #change(tool) {
    if (!this.#cell) this.#go(0, 0);
    this.#last = null;
    const isChanged = this.#touch(this.#centre(), tool);
    this.#last = null;
    this.#say(`${isChanged ? (tool === "erase" ? "erased" : "painted") : "nothing to change"}, ${this.#where()}`);
  }

  #centre() {
    const { map } = this.act;
    const [x, y] = centreOf(map, this.#cell.row * map.grid[1] + this.#cell.column);
    return { x, y };
  }

  #where() {
    const { grid, values } = this.act.map;
    const { row, column } = this.#cell;
    const held = this.#edits.get(this.act.look) ?? values;
    return `column ${column + 1} of ${grid[1]}, row ${row + 1} of ${grid[0]}, weight ${weight(held[row * grid[1] + column])}`;
  }

  #say(text) {
    this.spoken.textContent = text;
  }

  /** Erase or paint the cells between the last point of the stroke and this one; whether any changed. */
  #touch(point, tool = this.tool) {
    if (!this.#isOn(this.act)) return false;
    const { look, map } = this.#base.get(this.act.look);
    const weights = this.#edits.get(look) ?? Float32Array.from(map.values);
    const from = this.#last ?? point;
    this.#last = point;
    const parts = Math.max(1, Math.ceil(Math.hypot(point.x - from.x, point.y - from.y) / (this.#radius() / 2)));
    let changed = false;
    for (let part = 1; part <= parts; part++) {
      const [x, y] = ["x", "y"].map((axis) => from[axis] + ((point[axis] - from[axis]) * part) / parts);
      for (const cell of this.#cellsUnder(map, x, y)) {
        const value = tool === "erase" ? 0 : this.#level(look);
        changed ||= weights[cell] !== value;
        weights[cell] = value;
      }
    }
    if (!changed) return false;
    this.#edits.set(look, weights);
    this.#ask();
    return true;
  }

  /** Numbers of the cells whose centres lie under the brush, and of the one below its middle. */
  #cellsUnder(map, x, y) {
    const [rows, columns] = map.grid;
    const { row, column } = cellAt(map, x, y);
    const found = [row * columns + column];
    for (let cell = 0; cell < rows * columns; cell++) {
      const [cx, cy] = centreOf(map, cell);
      if (Math.hypot(cx - x, cy - y) <= this.#radius()) found.push(cell);
    }
    return found;
  }

  /** What is painted: an open gate, or the peak that the look had. */
  #level(look) {
    const { map, norm } = this.#base.get(look);
    return norm === "sigmoid" ? 1 : map.peak || 1;
  }

  #ask() {
    const attention = {};
    const names = this.names.filter((name) => this.#base.has(name));
    const first = names.findIndex((name) => this.#edits.has(name));
    names.forEach((name, number) => {
      const { map, norm } = this.#base.get(name);
      const edited = this.#edits.get(name);
      if (edited) attention[name] = rounded(norm === "softmax" ? scaled(edited) : edited);
      else if (this.later.value === "frozen" && number > first) attention[name] = rounded(map.values);
    });
    this.on.edit(attention);
  }

  #reset() {
    this.#edits.clear();
    this.on.edit(null);
  }
}

/** What was edited, in words; nothing where nothing was. */
export function editedText(edited) {
  if (!edited) return "";
  const looks = Object.entries(edited.looks).map(
    ([name, { cells, of, moved }]) => `${name} (${cells} of ${of} weights differ, ${percent(moved)} of the map moved)`,
  );
  const frozen = edited.frozen.length ? `; frozen: ${edited.frozen.join(", ")}` : "";
  const { answer, confidence } = edited.unedited;
  return `Edited: ${looks.join(", ") || "nothing"}${frozen}. Without the edit: ${answer} ${percent(confidence)}.`;
}

function select(name, values, chosen, onchange = () => {}) {
  const made = element("select", { "aria-label": name, onchange }, ...options(values));
  made.value = chosen;
  return made;
}

/** The weights with a sum of 1, unless there are none left. */
function scaled(weights) {
  const sum = weights.reduce((total, value) => total + value, 0);
  return sum > 0 ? weights.map((value) => value / sum) : weights;
}

function rounded(weights) {
  return Array.from(weights, (value) => Number(value.toPrecision(DIGITS)));
}
