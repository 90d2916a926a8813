// A view's looks as a list of acts, one for each look and step, and the total: what the slider walks through.

import { weight } from "./dom.js";
import { floatsFromBase64 } from "./floats.js";
import { IDENTITY } from "./frames.js";

export const TOTAL = "total";
const SPAN = 0.5; // as in saccade.show.colours

/** The acts of a view in the order they happened, those that never took place left out, the total last. */
export function actsOf(view) {
  const beats = beatsOf(view.looks);
  const acts = view.looks.flatMap((look) => actsOfLook(look, view, beats));
  return [...(beats ? inTime(acts) : acts), ...totalOf(view), ...framesOf(acts)];
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

/** Of nested crops and nothing else, all their frames at once. */
function framesOf(acts) {
  const boxes = acts.map(({ box }) => box);
  if (boxes.length < 2 || boxes.some((box) => !box)) return [];
  return [{ key: TOTAL, title: "total", note: "all crops, one inside the other", beat: null, map: null, boxes }];
}

function totalOf(view) {
  if (!view.total) return [];
  return [{ key: TOTAL, title: "total", note: "all looks together", beat: null, map: mapOf(view.total, 0, 0) }];
}

/** `beats` are those that looks share, 0 where each has its own; a look may fill a beat with several steps. */
function actsOfLook(look, view, beats) {
  const acts = [];
  const filled = beats && look.steps > 1 ? look.steps / beats : 1;
  for (let step = 0; step < look.steps; step++) {
    if (look.active && !look.active[step]) continue;
    const beat = look.steps > 1 ? Math.floor(step / filled) : null;
    acts.push({
      key: look.steps > 1 ? `${look.name}:${step}` : look.name,
      ...namesOf(look, step, view, beats && beat !== null ? filled : 0),
      said: beat === null ? undefined : saidAt(view, beat),
      note: noteOf(look),
      look: look.name,
      role: look.role,
      norm: look.norm,
      beat,
      map: look.weights && look.grid ? mapOf(look, step) : null,
      slots: look.slots ? slotsOf(look, step) : null,
      box: boxOf(look, step),
      gain: look.gain ? look.gain[step] : null,
      ...chosenAt(look, step, filled),
    });
  }
  return acts;
}

/** {title}, and where looks share beats {name, place} too: which look of the beat, and which beat. */
function namesOf(look, step, view, filled) {
  const beat = Math.floor(step / (filled || 1));
  const said = saidAt(view, beat);
  if (filled) {
    const count = look.active ? look.active.filter(Boolean).length / filled : look.steps / filled;
    const name = nameInBeat(look, step, filled);
    const title = said === undefined ? name : `${said} · ${name}`;
    return { name, title, place: `step ${beat + 1} of ${count}` };
  }
  if (look.steps === 1) return { title: look.name, ...wayOf(view, look.name) };
  return { title: `${look.name} ${step + 1}${said === undefined ? "" : `: ${said}`}` };
}

/** {title} with what was said at a look before all was seen; nothing where nothing was. */
function wayOf(view, name) {
  const found = (view.on_the_way ?? []).find(([at]) => at === name);
  return found ? { title: `${name}: ${found[1]}` } : {};
}

function noteOf(look) {
  const size = look.grid ? `, ${look.grid.join("×")} cells` : "";
  return `${look.kind} ${look.role}${look.kind === "crop" ? "" : size}`;
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
  const all = floatsOf(entry);
  const values = all.subarray(step * rows * columns, (step + 1) * rows * columns);
  if (values.length !== rows * columns)
    throw new Error(`weights of '${entry.name ?? TOTAL}' do not fill ${rows}×${columns}`);
  const frame = entry.frame ?? IDENTITY;
  const own = Array.isArray(frame[0][0]) ? frame[step] : frame;
  const peak = peakOf(values);
  const least = entry.base ? values.reduce((low, value) => Math.min(low, value), Infinity) : 0;
  const ends = entry.base ? endsOf(least, peak, base) : { low: 0, high: peak };
  return { values, grid: entry.grid, frame: own, peak, least, ...ends };
}

function slotsOf(look, step) {
  const count = look.slots.length;
  const values = floatsOf(look).subarray(step * count, (step + 1) * count);
  return { values, texts: look.slots, own: look.own_slots ?? 0, peak: peakOf(values) };
}

function boxOf(look, step) {
  if (!look.box) return null;
  return Array.isArray(look.box[0]) ? look.box[step] : look.box;
}

/** Decoded once for each look: a strip asks for every step of it. */
const decoded = new WeakMap();

function floatsOf(entry) {
  if (typeof entry.weights !== "string") return entry.weights;
  if (!decoded.has(entry)) decoded.set(entry, floatsFromBase64(entry.weights, entry.dtype));
  return decoded.get(entry);
}

/** The ends of the colours for a mask that only adds, as in the PNG: wider than the mask where that is nearly even. */
function endsOf(least, peak, base) {
  const middle = (least + peak) / 2;
  const span = SPAN * Math.abs(base + middle);
  if (peak - least >= span) return { low: least, high: peak };
  return { low: middle - span / 2, high: middle + span / 2, isFixed: true };
}

function peakOf(values) {
  let peak = 0;
  for (const value of values) if (value > peak) peak = value;
  return peak;
}

/** What looks that share a beat are called there; any other look keeps its own name. */
const WORDS = {
  saliency: "saliency before",
  covert: "covert mask",
  priority: "priority map",
  inhibited: "saliency after",
};
const END = "end";

/** How many beats the looks share; 0 where fewer than two of them repeat, or have no beat in common. */
export function beatsOf(looks) {
  const repeating = looks.map(({ steps }) => steps).filter((steps) => steps > 1);
  const beats = Math.min(...repeating);
  return repeating.length > 1 && repeating.every((steps) => steps % beats === 0) ? beats : 0;
}

/** Acts beat by beat, in the order of the trace within each; what happens once stays before or behind them. */
export function inTime(acts) {
  const first = acts.findIndex(({ beat }) => beat !== null);
  const when = new Map(acts.map((act, number) => [act, act.beat ?? (number < first ? -1 : Infinity)]));
  return [...acts].sort((one, two) => (when.get(one) === when.get(two) ? 0 : when.get(one) - when.get(two)));
}

/** The name of a look within a beat of which it fills `steps`. */
export function nameInBeat(look, step, steps) {
  const name = WORDS[look.name] ?? look.name;
  return steps > 1 ? `${name} ${(step % steps) + 1}` : name;
}

/** Whether the answer is one "label", "labels" said one after the other, or a "sentence"; older views show it. */
export function kindOf(view) {
  return view.kind ?? (view.words ? "sentence" : view.labels ? "labels" : "label");
}

/** The words or labels of an answer that was said one after the other; null for one label. */
export function spokenIn(view) {
  return view.words ?? view.labels?.map(([word]) => word) ?? null;
}

/** The word or label of a beat, the end behind the last of them; undefined where nothing is said. */
export function saidAt(view, beat) {
  const said = spokenIn(view);
  return said?.[beat] ?? (beat === said?.length ? END : undefined);
}
