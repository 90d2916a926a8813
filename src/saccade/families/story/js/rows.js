// The sentences of a story, one row each: typed, added, removed, and moved by buttons, by keys or by dragging.
//
// A row that moves stays where it is in the document and its neighbours go around it, so that it keeps the focus.

import { piecesOf } from "./words.js";

export class Rows {
  list = []; // {element, field, up, down, cells}

  /** `on` says what happens: changed(at once or not), said(words for a reader of the screen). */
  constructor(element, { sentences, characters }, on) {
    Object.assign(this, { make: element, most: sentences, longest: characters, on });
    this.element = element("tbody");
  }

  get texts() {
    return this.list.map(({ field }) => field.text);
  }

  /** Show these sentences in place of all others. */
  open(texts) {
    this.list = (texts.length ? texts : [""]).slice(0, this.most).map((text) => this.#row(text));
    this.element.replaceChildren(...this.list.map(({ element }) => element));
    this.#number();
  }

  /** Insert sentences at a place and go to the last of them. */
  insert(at, texts = [""]) {
    const room = this.most - this.list.length;
    if (room < texts.length) this.on.said(`A story has at most ${this.most} sentences.`);
    const added = texts.slice(0, room).map((text) => this.#row(text));
    if (!added.length) return;
    const behind = this.list[at]?.element ?? null;
    for (const { element } of added) this.element.insertBefore(element, behind);
    this.list.splice(at, 0, ...added);
    this.#number();
    added.at(-1).field.input.focus();
    this.on.changed(true);
  }

  remove(row) {
    const at = this.list.indexOf(row);
    const hadFocus = row.element.contains(document.activeElement);
    if (this.list.length === 1) row.field.text = ""; // there is always a line to write on
    else {
      this.list.splice(at, 1);
      row.element.remove();
    }
    this.#number();
    if (hadFocus) this.list[Math.min(at, this.list.length - 1)].field.input.focus();
    this.on.said(`Sentence ${at + 1} removed.`);
    this.on.changed(true);
  }

  /** Move a row to another place. */
  move(row, to) {
    const from = this.list.indexOf(row);
    if (to === from || to < 0 || to >= this.list.length) return;
    for (let at = from; at < to; at++) row.element.before(row.element.nextElementSibling);
    for (let at = from; at > to; at--) row.element.after(row.element.previousElementSibling);
    this.list.splice(to, 0, ...this.list.splice(from, 1));
    this.#number();
    this.on.said(`Moved to place ${to + 1} of ${this.list.length}.`);
    this.on.changed(true);
  }

  #row(text) {
    const { make } = this;
    const row = { cells: [] };
    const button = (kind, does) => make("button", { type: "button", class: `icon story-${kind}`, onclick: does });
    const step = (by) => {
      this.move(row, this.list.indexOf(row) + by);
      const [own, other] = by < 0 ? [row.up, row.down] : [row.down, row.up];
      if (own.disabled) other.focus(); // at the end; a disabled button hears no keys
    };
    row.field = new Field(make, { maxlength: this.longest }, () => this.on.changed(false));
    row.field.text = text;
    row.field.input.addEventListener("keydown", (event) => this.#key(event, row));
    row.field.input.addEventListener("paste", (event) => this.#paste(event, row));
    row.up = button("up", () => step(-1));
    row.down = button("down", () => step(1));
    row.away = button("away", () => this.remove(row));
    row.grip = make("td", { class: "story-grip", title: "Drag to move", "aria-hidden": "true" });
    row.grip.addEventListener("pointerdown", (event) => this.#drag(event, row));
    row.end = make("td", { class: "story-does" }, row.up, row.down, row.away);
    row.element = make("tr", {}, row.grip, make("td", { class: "story-text" }, row.field.element), row.end);
    return row;
  }

  #key(event, row) {
    const at = this.list.indexOf(row);
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (event.isComposing || event.ctrlKey || event.metaKey) return;
    if (by && event.altKey) this.move(row, at + by);
    else if (by) this.list[at + by]?.field.input.focus();
    else if (event.key === "Enter") this.insert(at + 1);
    else if (event.key === "Backspace" && !row.field.text && this.list.length > 1) {
      this.remove(row);
      this.list[Math.max(0, at - 1)].field.input.focus();
    } else return;
    event.preventDefault();
  }

  /** Several lines become several sentences. */
  #paste(event, row) {
    const lines = (event.clipboardData?.getData("text") ?? "").split(/[\r\n]+/).filter((line) => line.trim());
    if (lines.length < 2) return;
    event.preventDefault();
    const cut = lines.map((line) => line.trim().slice(0, this.longest));
    const at = this.list.indexOf(row) + 1;
    if (!row.field.text) row.field.text = cut.shift();
    this.insert(at, cut);
  }

  #drag(event, row) {
    if (event.button) return;
    event.preventDefault();
    const start = this.list.indexOf(row);
    const listening = new AbortController();
    const { signal } = listening;
    const end = () => {
      row.element.classList.remove("story-dragged");
      listening.abort();
    };
    row.element.classList.add("story-dragged");
    row.grip.setPointerCapture(event.pointerId);
    const follow = ({ clientY }) => {
      const above = this.list.filter((other) => other !== row && middle(other.element) < clientY);
      this.move(row, above.length);
    };
    row.grip.addEventListener("pointermove", follow, { signal });
    row.grip.addEventListener("pointerup", end, { signal });
    row.grip.addEventListener("pointercancel", end, { signal });
    const cancel = ({ key }) => {
      if (key !== "Escape") return;
      this.move(row, start);
      end();
    };
    document.addEventListener("keydown", cancel, { signal });
  }

  /** Names for those who do not see the places, and no way beyond the ends. */
  #number() {
    this.list.forEach(({ field, up, down, away }, at) => {
      const name = `sentence ${at + 1}`;
      field.input.setAttribute("aria-label", name);
      up.setAttribute("aria-label", `Move ${name} up`);
      down.setAttribute("aria-label", `Move ${name} down`);
      away.setAttribute("aria-label", `Remove ${name}`);
      for (const button of [up, down, away]) button.title = button.getAttribute("aria-label");
      up.disabled = at === 0;
      down.disabled = at === this.list.length - 1;
    });
  }
}

function middle(element) {
  const { top, height } = element.getBoundingClientRect();
  return top + height / 2;
}

/** A text field that underlines words: a copy of its text lies behind it, and only lines under unknown words show. */
export class Field {
  #known = () => true;

  /** `changed()` is called when somebody typed; `properties` are those of the input element. */
  constructor(element, properties, changed) {
    this.make = element;
    this.input = element("input", { type: "text", autocomplete: "off", spellcheck: "false", ...properties });
    this.copy = element("span", { class: "story-copy", "aria-hidden": "true" });
    this.element = element("span", { class: "story-field" }, this.copy, this.input);
    this.input.addEventListener("input", () => {
      this.mark(this.#known);
      changed();
    });
    this.input.addEventListener("scroll", () => (this.copy.scrollLeft = this.input.scrollLeft));
  }

  get text() {
    return this.input.value;
  }

  set text(text) {
    this.input.value = text;
    this.mark(this.#known);
  }

  /** Underline words for which `known(word)` is false. */
  mark(known) {
    this.#known = known;
    const pieces = piecesOf(this.text).map(({ text, word }) =>
      word && !known(word) ? this.make("u", { text }) : text,
    );
    this.copy.replaceChildren(...pieces);
    this.copy.scrollLeft = this.input.scrollLeft;
  }

  /** What a reader of the screen says after the text; empty for nothing. */
  describe(words) {
    if (words) this.input.setAttribute("aria-description", words);
    else this.input.removeAttribute("aria-description");
  }
}
