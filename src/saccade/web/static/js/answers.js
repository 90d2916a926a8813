// Asking a source about what is on the page as its model is asked, and what the answer rests on.

import { maskOfView, pictureOfPixels, pictureOfView } from "./pictures.js";
import { renderScene } from "./scene.js";

/** "choice", "text" or "none"; a model that does not say it has a list of questions or takes none. */
export function asksOf(model) {
  return model?.asks ?? (model?.queries?.length ? "choice" : "none");
}

/** What is sent to `model` when `question` is asked on the page; null where it takes no question. */
export function askedOf(model, question) {
  return asksOf(model) === "none" ? null : question;
}

export const PICTURE = "picture";

/** What `model` is shown on the page: pictures, or the thing it reads where its family's panel makes that. */
export function shownTo(model) {
  return model?.takes === "json" && model.panel ? model.reads : PICTURE;
}

/** Why `model` cannot be asked `question` about what the page shows it; null where it can. */
export function refusalOf(model, question) {
  if (model.size === null && shownTo(model) === PICTURE) return `This model does not read pictures; it reads: ${model.reads}. Ask it with “saccade look”.`;
  if (asksOf(model) === "text" && !question) return "Ask it something.";
  if (asksOf(model) !== "choice" || model.queries.includes(question)) return null;
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
  const asked = askedOf(model, question);
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
