// Asking a source about what is on the page, and what its answer rests on.

import { askedOf } from "./asking.js";
import { maskOfView, pictureOfPixels, pictureOfView } from "./pictures.js";
import { renderScene } from "./scene.js";

/** What is asked about: a scene, rendered here with the pixels of each of its digits, or any picture. */
export function subjectOf({ mode, scene, picture }, glyphs) {
  if (mode !== "scene") return { picture };
  const { rgba, width, height, masks } = renderScene(scene, glyphs);
  return { scene, masks, picture: pictureOfPixels(rgba, width, height) };
}

/**
 * {view, picture, evidence, masks, digits}, or null where a newer question took its place. `attention`: weights of
 * looks that were edited, by their names.
 */
export async function answerOf(source, model, subject, question, attention = null) {
  const asked = askedOf(model, question);
  const view = await source.look(model, subject, asked, attention);
  if (!view) return null;
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
