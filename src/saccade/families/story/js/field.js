// A text field that underlines words: a copy of its text lies behind it, and only the lines under unknown words show.

import { piecesOf } from "./words.js";

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
