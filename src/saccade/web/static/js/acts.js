// A view's looks as a list of acts, one for each look and step, and the total: what the slider walks through.
//
// Looks may share beats: one label or word each. A look then fills a beat with one step, or with several (glimpses).

import { weight } from "./dom.js";
import { IDENTITY } from "./frames.js";
import { floatsFromBase64 } from "./views.js";

export const TOTAL = "total";
const SPAN = 0.5; // as in saccade.show.colours
const END = "end";

/** What looks that share a beat are called there; any other look keeps its own name. */
const WORDS = {
  saliency: "saliency before",
  covert: "covert mask",
  priority: "priority map",
  inhibited: "saliency after",
};

/** The acts of a view in the order they happened, those that never took place left out, the total last. */
export function actsOf(view) {
  const beats = beatsOf(view.looks);
  const acts = view.looks.flatMap((look) => actsOfLook(look, view, beats));
  return [...(beats ? inTime(acts) : acts), ...totalOf(view, acts)];
}

/** The raw peak of an act and the gate on it, in words; nothing for an act without a map. */
export function measuresOf({ map, gain }) {
  const words = [
    map && map.least && `least ${weight(map.least)}`,
    map && `peak ${weight(map.peak)}`,
    map?.isFixed && `nearly even: colours from ${weight(map.low)} to ${weight(map.high)}`,
    typeof gain === "number" && `gate β ${gain.toFixed(2)}`,
  ];
  return words.filter(Boolean).join(" · ");
}

/** The words or labels of an answer that was said one after the other; null for one label. */
export function spokenIn(view) {
  return view.words ?? view.labels?.map(([word]) => word) ?? null;
}

/** The total of a view; of nested crops and nothing else, all their frames at once. */
function totalOf(view, acts) {
  const total = { key: TOTAL, title: "total", beat: null };
  if (view.total) return [{ ...total, note: "all looks together", map: mapOf(view.total, 0, 0) }];
  const boxes = acts.map(({ box }) => box);
  if (boxes.length < 2 || boxes.some((box) => !box)) return [];
  return [{ ...total, note: "all crops, one inside the other", map: null, boxes }];
}

/** How many beats the looks share; 0 where fewer than two of them repeat, or have no beat in common. */
function beatsOf(looks) {
  const repeating = looks.map(({ steps }) => steps).filter((steps) => steps > 1);
  const beats = Math.min(...repeating);
  return repeating.length > 1 && repeating.every((steps) => steps % beats === 0) ? beats : 0;
}

/** Acts beat by beat, in the order of the trace within each; what happens once stays before or behind them. */
function inTime(acts) {
  const first = acts.findIndex(({ beat }) => beat !== null);
  const when = new Map(acts.map((act, number) => [act, act.beat ?? (number < first ? -1 : Infinity)]));
  return [...acts].sort((one, two) => when.get(one) - when.get(two) || 0); // those at infinity stay in order too
}

/** `beats` are those that looks share, 0 where each has its own; a look may fill a beat with several steps. */
function actsOfLook(look, view, beats) {
  const acts = [];
  const repeats = look.steps > 1;
  const filled = beats && repeats ? look.steps / beats : 1;
  const size = look.grid && look.kind !== "crop" ? `, ${look.grid.join("×")} cells` : "";
  for (let step = 0; step < look.steps; step++) {
    if (look.active && !look.active[step]) continue;
    const beat = repeats ? Math.floor(step / filled) : null;
    const said = repeats ? saidAt(view, beat) : undefined;
    acts.push({
      key: repeats ? `${look.name}:${step}` : look.name,
      ...(beats && repeats ? namesInBeat(look, step, filled, said) : { title: titleOf(look, step, view, said) }),
      said,
      note: `${look.kind} ${look.role}${size}`,
      look: look.name,
      role: look.role,
      norm: look.norm,
      beat,
      map: look.weights && look.grid ? mapOf(look, step) : null,
      slots: look.slots ? slotsOf(look, step) : null,
      box: look.box,
      gain: look.gain?.[step],
      ...chosenAt(look, step, filled),
    });
  }
  return acts;
}

/** The word or label of a beat, the end behind the last of them; undefined where nothing is said. */
function saidAt(view, beat) {
  const spoken = spokenIn(view);
  return spoken?.[beat] ?? (beat === spoken?.length ? END : undefined);
}

/** {name, title, place} where looks share beats: which look of the beat, and which beat. */
function namesInBeat(look, step, filled, said) {
  const count = (look.active ? look.active.filter(Boolean).length : look.steps) / filled;
  const number = filled > 1 ? ` ${(step % filled) + 1}` : "";
  const name = (WORDS[look.name] ?? look.name) + number;
  const title = said === undefined ? name : `${said} · ${name}`;
  return { name, title, place: `step ${Math.floor(step / filled) + 1} of ${count}` };
}

/** The name of a look, with what was said at it, perhaps before all was seen. */
function titleOf(look, step, view, said) {
  const way = view.on_the_way?.find(([at]) => at === look.name);
  const name = look.steps > 1 ? `${look.name} ${step + 1}` : look.name;
  const word = look.steps > 1 ? said : way?.[1];
  return word === undefined ? name : `${name}: ${word}`;
}

/** {choice}, the cell that was chosen, or where a beat has several {path}: those up to this step, in order. */
function chosenAt(look, step, filled) {
  if (!look.choice) return {};
  return filled > 1 ? { path: look.choice.slice(step - (step % filled), step + 1) } : { choice: look.choice[step] };
}

/**
 * One step of a look (or the total) as {values, grid, frame, peak, least, low, high}; low and high are the ends of the
 * colours. `base` is what is added to a mask before it multiplies: the total has that in its values already.
 */
function mapOf(entry, step, base = entry.base) {
  const [rows, columns] = entry.grid;
  const values = stepOf(entry, step, rows * columns);
  if (values.length !== rows * columns)
    throw new Error(`weights of '${entry.name ?? TOTAL}' do not fill ${rows}×${columns}`);
  const peak = peakOf(values);
  const least = entry.base ? values.reduce((low, value) => Math.min(low, value), Infinity) : 0;
  const ends = entry.base ? endsOf(least, peak, base) : { low: 0, high: peak };
  return { values, grid: entry.grid, frame: entry.frame ?? IDENTITY, peak, least, ...ends };
}

function slotsOf(look, step) {
  const values = stepOf(look, step, look.slots.length);
  return { values, texts: look.slots, own: look.own_slots ?? 0, peak: peakOf(values) };
}

/** Decoded once for each look: a strip asks for every step of it. */
const decoded = new WeakMap();

function stepOf(entry, step, count) {
  if (!decoded.has(entry)) decoded.set(entry, floatsFromBase64(entry.weights, entry.dtype));
  return decoded.get(entry).subarray(step * count, (step + 1) * count);
}

/** The ends of the colours for a mask that only adds, as in the PNG: wider than the mask where that is nearly even. */
function endsOf(least, peak, base) {
  const middle = (least + peak) / 2;
  const span = SPAN * Math.abs(base + middle);
  if (peak - least >= span) return { low: least, high: peak };
  return { low: middle - span / 2, high: middle + span / 2, isFixed: true };
}

function peakOf(values) {
  return values.reduce((peak, value) => Math.max(peak, value), 0);
}
