// Asking: the questions that a model knows, asking its source about what is on the page, and what the answer rests on.

import { button, element, options, part } from "./dom.js";
import { maskOfView, pictureOfPixels, pictureOfView } from "./pictures.js";
import { renderScene } from "./scene.js";

const BUTTONS = 24;
export const PICTURE = "picture";

/** A button for every question that the model knows, or a field where there are too many or any can be asked. */
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
    const { asks, queries } = model;
    if (asks !== "choice" || queries.includes(question)) return question;
    return queries.find((word) => present?.includes(word)) ?? queries[0];
  }

  /** Show the questions of `model`; `digits` are those of a composed scene, null where that is not known. */
  show(model, digits) {
    const { asks, queries: questions } = model;
    const isAboutDigits = questions.some((word) => /^[0-9]$/.test(word));
    const present = isAboutDigits ? digits : null;
    this.title.textContent = model.prompt ?? "Ask";
    this.group.hidden = asks === "none";
    const asked = this.store.state.question;
    if (this.shown !== model) {
      this.shown = model;
      const isField = asks === "text" || questions.length > BUTTONS;
      const chip = (word) => button(word, () => this.store.set({ question: word }), { class: "chip" });
      this.list.replaceChildren(...(isField ? this.#field(questions) : questions.map(chip)));
    }
    for (const chip of this.list.querySelectorAll("button")) {
      const word = chip.textContent;
      chip.setAttribute("aria-pressed", String(word === asked));
      chip.classList.toggle("absent", Boolean(present) && !present.includes(word));
    }
    const absent = present && asked !== null && !present.includes(asked);
    this.note.textContent = absent
      ? `The scene has no ${asked}. Watch what the model answers anyway.`
      : digits && questions.length && !isAboutDigits
        ? "This model was not trained on digits. Open a picture of the kind it was trained on."
        : "";
  }

  #field(questions) {
    const list = element("datalist", { id: "saccade-questions" }, ...options(questions));
    const field = element("input", { type: "search", list: list.id, placeholder: "ask …", "aria-label": "question" });
    field.value = this.store.state.question ?? "";
    field.addEventListener("change", () => this.store.set({ question: field.value }));
    return [field, list];
  }
}

/** What `model` is shown on the page: pictures, or the thing it reads where its family's panel makes that. */
export function shownTo(model) {
  return model?.takes === "json" && model.panel ? model.reads : PICTURE;
}

/** Why `model` cannot be asked `question` about what the page shows it; null where it can. */
export function refusalOf(model, question) {
  if (model.size === null && shownTo(model) === PICTURE)
    return `This model does not read pictures; it reads: ${model.reads}. Ask it with “saccade look”.`;
  if (model.asks === "text" && !question) return "Ask it something.";
  if (model.asks !== "choice" || model.queries.includes(question)) return null;
  return `This model cannot be asked “${question}”. It can be asked: ${model.queries.slice(0, 10).join(", ")}.`;
}

/** What is asked about: a scene, rendered here with the pixels of each of its digits, or any picture. */
export function subjectOf({ mode, scene, picture }, glyphs) {
  if (mode !== "scene") return { picture };
  const { rgba, width, height, masks } = renderScene(scene, glyphs);
  return { scene, masks, picture: pictureOfPixels(rgba, width, height) };
}

/** {view, picture, evidence, masks, digits}; `attention`: weights of looks that were edited, by their names. */
export async function answerOf(source, model, subject, question, attention = null) {
  const asked = model.asks === "none" ? null : question;
  const view = await source.look(model, subject, asked, attention);
  const picture = view.picture?.png ? await pictureOfView(view) : (subject.picture ?? null);
  const evidence = picture && (await evidenceOf(view, subject, asked, picture));
  return { view, picture, evidence, masks: subject.masks ?? null, digits: subject.scene?.digits ?? [] };
}

/** A saved view in the same form. */
export async function answerOfRecord(view) {
  const picture = view.picture && (await pictureOfView(view));
  return { view, picture, evidence: picture && (await maskOfView(view, picture)), masks: null, digits: [] };
}

/** The pixels that hold the answer: as the source tells them, or those of the digit that was asked for. */
async function evidenceOf(view, { scene, masks }, question, picture) {
  const told = await maskOfView(view, picture);
  if (told || !masks) return told;
  const number = scene.digits.findIndex(({ digit }) => String(digit) === question);
  return number < 0 ? null : { width: picture.width, height: picture.height, mask: masks[number] };
}
