// Downloads of what is shown: a PNG of all looks, a record, or a page of its own that needs nothing else.

import { measuresOf } from "./acts.js";
import { editedText } from "./brush.js";
import { percent } from "./dom.js";
import { paintAct, paintOutline } from "./paint.js";
import { asPng, maskAsPng } from "./pictures.js";
import { recordText } from "./records.js";

const PANEL = 240;
const GAP = 12;
const WORDS = 44;
const FONT = "system-ui, sans-serif";

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
      picture: picture && { ...lens.view.picture, width: picture.width, height: picture.height, png: await asPng(picture) },
      evidence: lens.evidence ? { mask_png: await maskAsPng(lens.evidence) } : null,
    })),
  );
}

function fileName(lenses, ending) {
  const { view } = lenses[0].lens;
  const model = lenses.length > 1 ? "comparison" : view.model;
  const isEdited = lenses.some(({ lens }) => lens.view.edited);
  const words = ["saccade", model, view.question ? `ask-${view.question}` : "", isEdited ? "edited" : ""].filter(Boolean);
  return `${words.join("-").replace(/[^\w-]+/g, "_").slice(0, 80)}.${ending}`;
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  Object.assign(link, { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000); // the browser reads it after the click
}

/** The looks of `lenses` as the page shows them: a row for each model, a panel for each act, words below. */
function stripCanvas(lenses, { style, outline }) {
  const painted = lenses.filter(({ picture }) => picture);
  if (!painted.length) throw new Error("these looks lie on no picture; save them as a record or as a page");
  const drawn = ({ acts }) => acts.filter((act) => act.map || act.box || act.boxes);
  const rows = painted.map(({ lens, picture }) => ({ lens, picture, acts: [null, ...drawn(lens)] }));
  const heights = rows.map(({ picture }) => Math.round((PANEL * picture.height) / picture.width));
  const columns = Math.max(...rows.map(({ acts }) => acts.length));
  const tall = heights.reduce((sum, height) => sum + height + 2 * WORDS, GAP);
  const canvas = new OffscreenCanvas(GAP + columns * (PANEL + GAP), tall);
  const context = canvas.getContext("2d");
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  let top = GAP;
  rows.forEach(({ lens, picture, acts }, number) => {
    write(context, headline(lens.view), GAP, top + 20, `600 17px ${FONT}`, "#16191f");
    acts.forEach((act, column) => {
      const area = { x: GAP + column * (PANEL + GAP), y: top + WORDS - 8, width: PANEL, height: heights[number] };
      paintAct(context, area, picture, act, style);
      if (outline && lens.evidence) paintOutline(context, area, lens.evidence);
      const words = act ? [act.title, measuresOf(act) || act.note] : ["picture"];
      words.forEach((line, below) => {
        write(context, line, area.x, area.y + area.height + 18 * (below + 1), `13px ${FONT}`, "#5a6270", PANEL);
      });
    });
    top += heights[number] + 2 * WORDS;
  });
  return canvas;
}

function headline(view) {
  const asked = view.question === null ? "" : `${view.question} → `;
  const sure = view.confidence === null ? "" : ` (${percent(view.confidence)})`;
  return [`${view.model}: ${asked}${view.answer}${sure}`, editedText(view.edited)].filter(Boolean).join(" · ");
}

function write(context, text, x, y, font, colour, room = PANEL * 4) {
  context.font = font;
  context.fillStyle = colour;
  context.fillText(text, x, y, room);
}
