// Views as files: what is saved can be opened again, here or in any other copy of the page, without a server.

import { actsOf } from "./acts.js";
import { isSavedLook, viewOfSavedLook } from "./saved_look.js";
import { VIEW } from "./views.js";

export const VIEWS = "saccade.views/1";
const LARGEST_FILE = 64 * 2 ** 20;

/** One JSON text of one or several views. */
export function recordText(views) {
  return JSON.stringify(views.length === 1 ? views[0] : { schema: VIEWS, views });
}

/** The views in a file, each checked; `beside` are files that came with it, such as the tensors of a saved look. */
export async function openRecord(file, beside = []) {
  if (file.size > LARGEST_FILE)
    throw new Error(`${file.name}: larger than ${LARGEST_FILE / 2 ** 20} MB; a record is not`);
  let content;
  try {
    content = JSON.parse(await file.text());
  } catch {
    throw new Error(`${file.name}: not JSON; open a record that this page saved`);
  }
  if (isSavedLook(content)) content = await withTensors(content, file, beside);
  return checkedViews(content, file.name);
}

async function withTensors(content, file, beside) {
  const tensors = beside.find(({ name }) => name === content.tensors?.file);
  if (!tensors) throw new Error(`${file.name}: open it together with ${content.tensors?.file}, which holds its maps`);
  try {
    return await viewOfSavedLook(content, await tensors.arrayBuffer());
  } catch (error) {
    throw new Error(`${file.name}: ${error.message}`);
  }
}

/** The views in parsed JSON; anything else is refused with what was found. */
export function checkedViews(content, name) {
  const views = content?.schema === VIEWS ? content.views : [content];
  if (!Array.isArray(views) || !views.length) throw new Error(`${name}: it holds no view`);
  for (const view of views) {
    if (view?.schema !== VIEW) {
      const found = JSON.stringify(view?.schema ?? null);
      throw new Error(`${name}: expected a view of ${VIEW}, found ${found}; open a record that this page saved`);
    }
    try {
      check(view);
    } catch (error) {
      throw new Error(`${name}: damaged (${error.message})`);
    }
  }
  return views;
}

function check(view) {
  const { width, height } = view.picture ?? { width: 1, height: 1 }; // of a model that read something else
  if (!(width >= 1 && height >= 1 && width <= 4096 && height <= 4096))
    throw new Error(`a picture of ${width}×${height} pixels`);
  if (typeof view.model !== "string" || typeof view.answer !== "string") throw new Error("no model or no answer");
  if (!Array.isArray(view.alternatives) || !Array.isArray(view.looks)) throw new Error("no alternatives or no looks");
  actsOf(view); // every look is decoded once, so that what is broken shows now
}
