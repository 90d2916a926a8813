// The story editor: sentences with the weights of every hop beside them, and a question. Models answer as it changes.

import { Hops } from "./hops.js";
import { Field, Rows } from "./rows.js";
import { tidy, wordsOf } from "./words.js";

const TYPING_MS = 150; // somebody who types on is not interrupted
const LONGEST_QUESTION = 200; // the server takes no more

/** Called by the page; see the Python module saccade.web.page. */
export function panel(place, page) {
  const editor = new Editor(place, page);
  const { examples } = page.model.panel_facts;
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
  #views = new Map(); // name of a model → its last answer
  #known = () => true;

  constructor(place, page) {
    const { element, model } = page;
    this.page = page;
    this.models = [model];
    this.hops = new Hops(page);
    this.rows = new Rows(element, model.panel_facts, {
      changed: (isDone) => this.#changed(isDone),
      said: (words) => (this.spoken.textContent = words),
    });
    this.question = new Field(element, { id: "story-question", maxlength: LONGEST_QUESTION }, () => this.#changed(false));
    this.question.input.addEventListener("keydown", ({ key }) => key === "Enter" && this.#changed(true));
    this.notes = element("p", { class: "hint story-notes", "aria-live": "polite" });
    this.spoken = element("p", { class: "spoken story-spoken", role: "status" });
    this.table = element("table", { class: "story-editor" }, this.hops.head, this.rows.element, this.hops.foot);
    place.append(
      element("div", { class: "head" }, element("h3", { text: "Story", "aria-level": 2 }), this.#examples(model.panel_facts.examples)),
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
    const isCurrent = this.hops.take(view, this.#told());
    this.table.classList.toggle("story-stale", !isCurrent);
    if (!isCurrent) return;
    this.#views.set(view.model, view);
    this.#paint();
  }

  unanswered(name) {
    this.hops.forget(name);
    this.#views.delete(name);
    this.#paint();
  }

  /** What was typed last is not lost. */
  close() {
    if (this.#timer !== null) this.#show();
  }

  #changed(isDone) {
    this.#mark();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#show(), TYPING_MS);
    if (isDone) this.#show();
  }

  #show() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#paint();
    const sentences = this.#told().map(({ text }) => text);
    this.page.show(sentences, tidy(this.question.text), this.#problem(sentences));
  }

  /** Rows that hold a sentence, with its text as it is sent. */
  #told() {
    const told = this.rows.list.map((row) => ({ row, text: tidy(row.field.text) }));
    return told.filter(({ text }) => wordsOf(text).length);
  }

  /** Why nobody can be asked; null where somebody can. */
  #problem(sentences) {
    const isKnown = (text) => wordsOf(text).some((word) => this.models.some(({ answers }) => answers.includes(word)));
    if (!sentences.length) return "Write a sentence.";
    if (!wordsOf(this.question.text).length) return "Ask a question.";
    if (!sentences.some(isKnown)) return "It knows no word of the story.";
    return isKnown(this.question.text) ? null : "It knows no word of the question.";
  }

  #paint() {
    this.hops.paint(this.rows.list);
    this.#mark();
    const shown = this.models.map(({ name }) => this.#views.get(name)?.notes ?? []);
    const words = [...new Set(shown.flat())].map((note) => `${note}.`).join(" ");
    if (this.notes.textContent !== words) this.notes.textContent = words; // read aloud when it changes
  }

  /** Underline the words that are not known. */
  #mark() {
    for (const field of [...this.rows.list.map((row) => row.field), this.question]) {
      const unknown = wordsOf(field.text).filter((word) => !this.#known(word));
      field.mark(this.#known);
      field.describe(unknown.length ? `not known: ${unknown.join(", ")}` : "");
    }
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
