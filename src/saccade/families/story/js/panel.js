// The story editor: sentences with the weights of every hop beside them, and a question. Models answer as it changes.

import { Field } from "./field.js";
import { Hops } from "./hops.js";
import { Rows } from "./rows.js";
import { STYLE } from "./style.js";
import { tidy, wordsOf } from "./words.js";

const TYPING_MS = 150; // somebody who types on is not interrupted
const LONGEST_QUESTION = 200; // the server takes no more

/** Called by the page; see the Python module saccade.web.page. */
export function panel(place, page) {
  page.style(STYLE);
  const editor = new Editor(place, page);
  const { examples } = page.model.told;
  editor.open(page.shown ? { sentences: page.shown.input, question: page.shown.question } : examples[0]);
  return {
    showsLooks: true,
    models: (models) => editor.serve(models),
    answered: (view) => editor.answered(view),
    unanswered: (name) => editor.unanswered(name),
    act: (act) => editor.hops.choose(act),
    closed: () => editor.close(),
  };
}

class Editor {
  #timer = null;
  #known = () => true;

  constructor(place, page) {
    const { element, model } = page;
    this.page = page;
    this.models = [model];
    this.hops = new Hops(page);
    this.rows = new Rows(element, model.told, {
      changed: (isDone) => this.#changed(isDone),
      said: (words) => (this.spoken.textContent = words),
    });
    this.question = new Field(element, { id: "story-question", maxlength: LONGEST_QUESTION }, () => this.#changed(false));
    this.question.input.addEventListener("keydown", ({ key }) => key === "Enter" && this.#changed(true));
    this.notes = element("p", { class: "hint story-notes", "aria-live": "polite" });
    this.spoken = element("p", { class: "story-spoken", role: "status" });
    this.table = element("table", { class: "story-editor" }, this.hops.head, this.rows.element, this.hops.foot);
    place.append(
      element("div", { class: "head" }, element("h3", { text: "Story" }), this.#examples(model.told.examples)),
      this.table,
      element(
        "div",
        { class: "row wrap" },
        this.#button("Add a sentence", () => this.rows.insert(this.rows.list.length)),
        this.#button("Clear", () => this.open({ sentences: [], question: this.question.text })),
        element("span", { class: "hint", text: "Enter: a new line. Alt with an arrow key: move the line." }),
      ),
      element(
        "div",
        { class: "story-question" },
        element("label", { for: "story-question", text: "Question" }),
        this.question.element,
      ),
      this.notes,
      this.spoken,
    );
  }

  /** Show a story and its question. */
  open({ sentences, question }) {
    this.rows.open(sentences);
    this.question.text = question;
    this.#changed(true);
  }

  /** The editor is for these models now. */
  serve(models) {
    this.models = models;
    const known = models.map(({ answers }) => new Set(answers));
    this.#known = (word) => known.every((words) => words.has(word));
    this.hops.order(models);
    this.#paint();
  }

  answered(view) {
    const isCurrent = this.hops.take(view, this.#sentences());
    this.table.classList.toggle("story-stale", !isCurrent);
    if (isCurrent) this.#paint();
  }

  unanswered(name) {
    this.hops.forget(name);
    this.#paint();
  }

  /** What was typed last is not lost. */
  close() {
    if (this.#timer !== null) this.#show();
  }

  #changed(isDone) {
    this.#note();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#show(), TYPING_MS);
    if (isDone) this.#show();
  }

  #show() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#paint();
    this.page.show(this.#sentences(), this.#asked());
  }

  #sentences() {
    return this.rows.texts.map(tidy).filter(Boolean);
  }

  /** The question, or nothing where no model knows a word of it. */
  #asked() {
    const text = tidy(this.question.text);
    const isKnown = ({ answers }) => wordsOf(text).some((word) => answers.includes(word));
    return this.models.some(isKnown) ? text : "";
  }

  #paint() {
    this.hops.paint(this.rows.list, ({ field }) => tidy(field.text) !== "");
    this.#note();
  }

  /** Name the words that are not known, and what the memory does not hold. */
  #note() {
    const unknown = new Set();
    for (const field of [...this.rows.list.map((row) => row.field), this.question]) {
      const found = wordsOf(field.text).filter((word) => !this.#known(word));
      field.mark(this.#known);
      field.describe(found.length ? `not known: ${found.join(", ")}` : "");
      for (const word of found) unknown.add(word);
    }
    const kept = this.hops.kept();
    const dropped = this.#sentences().length - kept;
    const who = this.models.length > 1 ? "not every model knows" : "the model does not know";
    const notes = [
      unknown.size && `Words that ${who} are left out: ${[...unknown].join(", ")}.`,
      dropped > 0 && `The memory holds the last ${kept} sentences: ${dropped} ${dropped > 1 ? "are" : "is"} left out.`,
    ];
    const words = notes.filter(Boolean).join(" ");
    if (this.notes.textContent !== words) this.notes.textContent = words; // read aloud when it changes
  }

  #examples(examples) {
    const { element } = this.page;
    const options = examples.map(({ title }, number) => element("option", { value: number, text: title }));
    const list = element(
      "select",
      { "aria-label": "choose an example" },
      element("option", { value: "", text: "Example …" }),
      ...options,
    );
    list.addEventListener("change", () => {
      if (examples[list.value]) this.open(examples[list.value]);
      list.value = "";
    });
    return list;
  }

  #button(text, onclick) {
    return this.page.element("button", { type: "button", text, onclick });
  }
}
