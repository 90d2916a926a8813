// Asking: a button for every question that the model knows, or a field where there are too many or any can be asked.

import { asksOf } from "./answers.js";
import { element, part } from "./dom.js";

const BUTTONS = 24;
const NONE = [];

export class Questions {
  constructor(root, store) {
    this.store = store;
    this.group = part(root, "ask");
    this.list = part(root, "question-list");
    this.note = part(root, "question-note");
    this.title = part(root, "question-title");
  }

  /** `question`, or another one where `model` does not know it: about something present, if it can be. */
  known(model, question, present) {
    const questions = model?.queries ?? NONE;
    if (asksOf(model) !== "choice" || questions.includes(question)) return question;
    return questions.find((word) => present?.includes(word)) ?? questions[0];
  }

  /** Show the questions of `model`; `digits` are those of a composed scene, null where that is not known. */
  show(model, digits) {
    const questions = model?.queries ?? NONE;
    const isAboutDigits = questions.some((word) => /^[0-9]$/.test(word));
    const present = isAboutDigits ? digits : null;
    this.title.textContent = model?.prompt ?? "Ask";
    this.group.hidden = asksOf(model) === "none";
    const asked = this.store.state.question;
    if (this.shown !== model) {
      this.shown = model;
      const isField = asksOf(model) === "text" || questions.length > BUTTONS;
      this.list.replaceChildren(...(isField ? this.#field(questions) : questions.map((word) => this.#button(word))));
    }
    for (const button of this.list.querySelectorAll("button")) {
      const word = button.textContent;
      button.setAttribute("aria-pressed", String(word === asked));
      button.classList.toggle("absent", Boolean(present) && !present.includes(word));
    }
    const absent = present && asked !== null && !present.includes(asked);
    this.note.textContent = absent
      ? `The scene has no ${asked}. Watch what the model answers anyway.`
      : digits && questions.length && !isAboutDigits
        ? "This model was not trained on digits. Open a picture of the kind it was trained on."
        : "";
  }

  #button(word) {
    return element("button", {
      type: "button",
      class: "chip",
      text: word,
      onclick: () => this.store.set({ question: word }),
    });
  }

  #field(questions) {
    const field = element("input", {
      type: "search",
      list: "saccade-questions",
      placeholder: "ask …",
      "aria-label": "question",
    });
    field.value = this.store.state.question ?? "";
    field.addEventListener("change", () => this.store.set({ question: field.value }));
    return [
      field,
      element("datalist", { id: "saccade-questions" }, ...questions.map((word) => element("option", { value: word }))),
    ];
  }
}
