// Records that `saccade look` writes, a JSON file and a safetensors file, as the views that the page draws.

import { apply, compose, IDENTITY } from "./frames.js";
import { asPng, pictureOfPixels } from "./pictures.js";
import { totalOf } from "./totals.js";
import { viewWith, written } from "./views.js";

const FORMAT = "saccade-record";
const VERSION = 1;

export function isSavedLook(content) {
  return content?.format === FORMAT;
}

/** The view of a record: `content` is its parsed JSON, `buffer` its tensor file, which is checked by its digest. */
export async function viewOfSavedLook(content, buffer) {
  if (content.schema_version !== VERSION)
    throw new Error(`a record of version ${content.schema_version}; update saccade`);
  await checkDigest(buffer, content.tensors.sha256);
  const tensors = readTensors(buffer);
  const picture = await pictureOf(tensors);
  const toPicture = wayToPicture(tensors, picture);
  const texts = content.meta?.slots ?? [];
  const looks = content.looks.map((entry, number) => lookOf(entry, number, tensors, { toPicture, texts }));
  const { model = "a model", answer = "", on_the_way: way = [], words, ...info } = content.info;
  return viewWith({
    ...{ model, answer, picture, words: words?.map(({ word }) => word) },
    ...{ question: info.question, confidence: info.confidence, calibrated: info.calibrated, fit: info.fit },
    ...{ alternatives: info.alternatives, labels: info.labels, notes: info.notes },
    kind: info.kind ?? (words ? "sentence" : info.labels ? "labels" : "label"),
    on_the_way: way.map(({ at, answer: word, confidence }) => [at, word, confidence]),
    looks: looks.map(written),
    total: picture && !isNested(looks) ? written(totalOf(looks, content.total, picture)) : null,
  });
}

async function checkDigest(buffer, expected) {
  if (!globalThis.crypto?.subtle) return; // only pages from safe origins may compute digests
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", buffer));
  const found = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found !== expected) throw new Error("its tensor file is damaged, or another record's");
}

async function pictureOf({ picture, image_size: size }) {
  if (!picture && !size) return null; // the model read something else
  if (!picture) return { width: size.values[1], height: size.values[0], png: null };
  const [height, width] = picture.shape;
  const rgba = new Uint8ClampedArray(4 * width * height).fill(255);
  for (let at = 0; at < width * height; at++) rgba.set(picture.values.subarray(3 * at, 3 * at + 3), 4 * at);
  return { width, height, png: await asPng(pictureOfPixels(rgba, width, height)) };
}

/** Network input → the picture as the record keeps it, which may be smaller than the original. */
function wayToPicture({ canvas, image_size: size }, picture) {
  if (!picture) return IDENTITY;
  const original = size ? { width: size.values[1], height: size.values[0] } : picture;
  const stretch = [[picture.width / original.width, 0, 0], [0, picture.height / original.height, 0]];
  return compose(stretch, canvas ? frameOf(canvas) : IDENTITY);
}

function lookOf({ name, kind, role, norm, grid, base = 0 }, number, tensors, { toPicture, texts }) {
  const held = (field) => tensors[`looks.${number}.${field}`];
  const list = (field) => (held(field) ? Array.from(held(field).values) : null);
  const weights = held("weights");
  const isSlots = kind === "slots";
  const cells = weights ? weights.shape.slice(isSlots ? -1 : -2) : grid;
  const steps = weights && weights.shape.length - 1 > cells.length ? weights.shape[1] : 1;
  const look = { name, kind, role, norm, base, steps, weights: weights ? Float32Array.from(weights.values) : null };
  Object.assign(look, { gain: list("gain"), choice: list("choice"), emits: list("emits"), box: null });
  look.active = list("active")?.map(Boolean) ?? null;
  if (isSlots) return { ...look, slots: slotsOf(cells[0], texts) };
  const frame = compose(toPicture, frameOf(held("frame")));
  const box = kind === "crop" ? [...apply(frame, 0, 0), ...apply(frame, cells[1], cells[0])] : null;
  return { ...look, grid: cells, frame, box };
}

/** The texts of `count` slots, empty for those that hold nothing; their numbers where no texts are known. */
function slotsOf(count, texts) {
  const isTold = texts.length > 0 && texts.length <= count;
  return Array.from({ length: count }, (_, slot) => (isTold ? (texts[slot] ?? "") : String(slot + 1)));
}

/** The last frame (2,3) of a tensor with any batch axis before it. */
function frameOf({ values }) {
  const [a, b, tx, c, d, ty] = values.slice(-6);
  return [[a, b, tx], [c, d, ty]];
}

/** Whether a trace looks at its picture by several crops and by nothing else: these are drawn as frames. */
function isNested(looks) {
  const spatial = looks.filter(({ grid }) => grid);
  return spatial.length > 1 && spatial.every(({ kind }) => kind === "crop");
}

const LARGEST_HEADER = 2 ** 24;

const READERS = {
  BOOL: [1, (view, at) => view.getUint8(at)],
  U8: [1, (view, at) => view.getUint8(at)],
  I32: [4, (view, at) => view.getInt32(at, true)],
  I64: [8, (view, at) => Number(view.getBigInt64(at, true))],
  BF16: [2, (view, at) => bitsAsFloat(view.getUint16(at, true) << 16)],
  F32: [4, (view, at) => view.getFloat32(at, true)],
  F64: [8, (view, at) => view.getFloat64(at, true)],
};

/** The tensors of a file's bytes by name: {shape, values}; anything out of its bounds is an error. */
export function readTensors(buffer) {
  const view = new DataView(buffer);
  const length = buffer.byteLength >= 8 ? Number(view.getBigUint64(0, true)) : NaN;
  if (!(length <= Math.min(LARGEST_HEADER, buffer.byteLength - 8))) throw new Error("not a safetensors file");
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const tensors = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name !== "__metadata__")
      tensors[name] = { shape: entry.shape, values: valuesOf(view, 8 + length, name, entry) };
  }
  return tensors;
}

function valuesOf(view, start, name, { dtype, shape, data_offsets: [from, to] }) {
  if (!READERS[dtype]) throw new Error(`tensor '${name}' is of the type ${dtype}, which the page does not read`);
  const [bytes, read] = READERS[dtype];
  const count = shape.reduce((product, side) => product * side, 1);
  if (to - from !== count * bytes || from < 0 || start + to > view.byteLength) {
    throw new Error(`tensor '${name}' does not fit its file`);
  }
  return Float64Array.from({ length: count }, (_, number) => read(view, start + from + number * bytes));
}

function bitsAsFloat(bits) {
  const view = new DataView(new ArrayBuffer(4));
  view.setInt32(0, bits);
  return view.getFloat32(0);
}
