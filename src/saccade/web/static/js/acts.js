// A view's looks as a list of acts, one for each look and step, and the total: what the slider walks through.

import { IDENTITY } from "./frames.js";

export const TOTAL = "total";

/** The little-endian floats of a base64 text. */
export function decodeFloats(text, dtype) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  if (dtype === "float16") return decodeHalves(new DataView(bytes.buffer));
  if (bytes.length % 4) throw new Error(`${bytes.length} bytes are no whole number of floats`);
  return new Float32Array(bytes.buffer);
}

function decodeHalves(view) {
  const floats = new Float32Array(view.byteLength / 2);
  for (let i = 0; i < floats.length; i++) {
    const bits = view.getUint16(2 * i, true);
    const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
    if (exponent === 31) floats[i] = fraction ? NaN : sign * Infinity;
    else floats[i] = sign * (exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction);
  }
  return floats;
}

/** The acts of a view in the order they happened, those that never took place left out, the total last. */
export function actsOf(view) {
  const acts = view.looks.flatMap((look) => actsOfLook(look, view));
  if (view.total) acts.push({ key: TOTAL, title: "total", note: "all looks together", map: mapOf(view.total, 0) });
  return acts;
}

function actsOfLook(look, view) {
  const acts = [];
  for (let step = 0; step < look.steps; step++) {
    if (look.active && !look.active[step]) continue;
    acts.push({
      key: look.steps > 1 ? `${look.name}:${step}` : look.name,
      title: titleOf(look, step, view),
      said: look.steps > 1 ? saidAt(view, step) : undefined,
      note: noteOf(look, step),
      look: look.name,
      step,
      map: look.weights && look.grid ? mapOf(look, step) : null,
      slots: look.slots ? slotsOf(look, step) : null,
      box: boxOf(look, step),
      choice: look.choice ? look.choice[step] : null,
    });
  }
  return acts;
}

function titleOf(look, step, view) {
  const said = saidAt(view, step);
  if (look.steps > 1 && said !== undefined) return `${look.name} ${step + 1}: ${said}`;
  return look.steps > 1 ? `${look.name} ${step + 1}` : look.name;
}

/** The word or label of a step; undefined where nothing was said. */
function saidAt(view, step) {
  return view.words?.[step] ?? view.labels?.[step]?.[0];
}

function noteOf(look, step) {
  const gain = look.gain ? `, gain ${look.gain[step].toPrecision(3)}` : "";
  const size = look.grid ? `, ${look.grid.join("×")} cells` : "";
  return `${look.kind} ${look.role}${look.kind === "crop" ? "" : size}${gain}`;
}

/** One step of a look (or the total) as {values, grid, frame, peak}. */
function mapOf(entry, step) {
  const [rows, columns] = entry.grid;
  const all = floatsOf(entry);
  const values = all.subarray(step * rows * columns, (step + 1) * rows * columns);
  if (values.length !== rows * columns)
    throw new Error(`weights of '${entry.name ?? TOTAL}' do not fill ${rows}×${columns}`);
  const frame = entry.frame ?? IDENTITY;
  return { values, grid: entry.grid, frame: Array.isArray(frame[0][0]) ? frame[step] : frame, peak: peakOf(values) };
}

function slotsOf(look, step) {
  const count = look.slots.length;
  const values = floatsOf(look).subarray(step * count, (step + 1) * count);
  return { values, texts: look.slots, peak: peakOf(values) };
}

function boxOf(look, step) {
  if (!look.box) return null;
  return Array.isArray(look.box[0]) ? look.box[step] : look.box;
}

/** Decoded once for each look: a strip asks for every step of it. */
const decoded = new WeakMap();

function floatsOf(entry) {
  if (typeof entry.weights !== "string") return entry.weights;
  if (!decoded.has(entry)) decoded.set(entry, decodeFloats(entry.weights, entry.dtype ?? "float32"));
  return decoded.get(entry);
}

function peakOf(values) {
  let peak = 0;
  for (const value of values) if (value > peak) peak = value;
  return peak;
}
