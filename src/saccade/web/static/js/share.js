// Downloads of what is shown: a PNG of all looks, a record, or a page of its own that needs nothing else.

import { asPng, maskAsPng } from "./pictures.js";
import { recordText } from "./records.js";
import { stripCanvas } from "./strip_png.js";

/** Save the strip of all lenses; `lenses` are {lens, picture}. */
export async function savePng(lenses, shown) {
  save(await stripCanvas(lenses, shown).convertToBlob({ type: "image/png" }), fileName(lenses, "png"));
}

/** Save the views with their pictures inside. */
export async function saveRecord(lenses) {
  const text = recordText(await wholeViews(lenses));
  save(new Blob([text], { type: "application/json" }), fileName(lenses, "json"));
}

/** Save a page that shows the views; `shell(views)` makes its text. */
export async function savePage(lenses, shell) {
  const text = await shell(await wholeViews(lenses));
  save(new Blob([text], { type: "text/html" }), fileName(lenses, "html"));
}

/** The views with picture and evidence inside, so that they can stand alone. */
async function wholeViews(lenses) {
  return Promise.all(
    lenses.map(async ({ lens, picture }) => ({
      ...lens.view,
      picture: picture && { ...lens.view.picture, ...(await wholePicture(picture)) },
      evidence: lens.evidence ? { mask_png: await maskAsPng(lens.evidence) } : null,
    })),
  );
}

async function wholePicture(picture) {
  return { width: picture.width, height: picture.height, png: await asPng(picture) };
}

function fileName(lenses, ending) {
  const { view } = lenses[0].lens;
  const model = lenses.length > 1 ? "comparison" : view.model;
  const isEdited = lenses.some(({ lens }) => lens.view.edited);
  const words = ["saccade", model, view.question ? `ask-${view.question}` : "", isEdited ? "edited" : ""];
  return `${words
    .filter(Boolean)
    .join("-")
    .replace(/[^\w-]+/g, "_")
    .slice(0, 80)}.${ending}`;
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  Object.assign(link, { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000); // the browser reads it after the click
}
