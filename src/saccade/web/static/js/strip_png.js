// The looks of every lens as one PNG: a row for each model, a panel for each act, words below.

import { measuresOf } from "./acts.js";
import { editedText } from "./brush.js";
import { paintAct, paintOutline } from "./paint.js";
import { percent } from "./dom.js";

const PANEL = 240;
const GAP = 12;
const WORDS = 44;
const FONT = "system-ui, sans-serif";

/** A canvas with the rows of `lenses`, painted as the page shows them. */
export function stripCanvas(lenses, { style, outline }) {
  const painted = lenses.filter(({ picture }) => picture);
  if (!painted.length) throw new Error("these looks lie on no picture; save them as a record or as a page");
  const rows = painted.map(({ lens, picture }) => ({
    lens,
    picture,
    acts: [null, ...lens.acts.filter((act) => act.map || act.box || act.boxes)],
  }));
  const heights = rows.map(({ picture }) => Math.round((PANEL * picture.height) / picture.width));
  const columns = Math.max(...rows.map(({ acts }) => acts.length));
  const canvas = new OffscreenCanvas(
    GAP + columns * (PANEL + GAP),
    GAP + heights.reduce((sum, height) => sum + height + 2 * WORDS, 0),
  );
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
