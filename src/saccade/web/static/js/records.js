// Views as files: what is saved can be opened again, here or in any other copy of the page, without a server. So can
// the records that `saccade look` writes, a JSON file and a safetensors file.

import { actsOf } from "./acts.js";
import { apply, compose, IDENTITY, stretch, totalOf } from "./frames.js";
import { asPng, pictureOfPixels } from "./pictures.js";
import { VIEW, viewWith, written } from "./views.js";

export const VIEWS = "saccade.views/1";
const LARGEST_FILE = 64 * 2 ** 20;
const FORMAT = "saccade-record";
const VERSION = 1;

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
  if (content?.format === FORMAT) content = await withTensors(content, file, beside);
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
  return compose(stretch(original, picture), canvas ? frameOf(canvas) : IDENTITY);
}

function lookOf({ name, kind, role, norm, grid, base = 0 }, number, tensors, { toPicture, texts }) {
  const tensor = (field) => tensors[`looks.${number}.${field}`];
  const list = (field) => (tensor(field) ? Array.from(tensor(field).values) : null);
  const weights = tensor("weights");
  const isSlots = kind === "slots";
  const cells = weights ? weights.shape.slice(isSlots ? -1 : -2) : grid;
  const steps = weights && weights.shape.length - 1 > cells.length ? weights.shape[1] : 1;
  const look = { name, kind, role, norm, base, steps, weights: weights ? Float32Array.from(weights.values) : null };
  Object.assign(look, { gain: list("gain"), choice: list("choice"), emits: list("emits"), box: null });
  look.active = list("active")?.map(Boolean) ?? null;
  if (isSlots) return { ...look, slots: slotsOf(cells[0], texts) };
  const frame = compose(toPicture, frameOf(tensor("frame")));
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
  BF16: [2, (view, at) => new Float32Array(Uint32Array.of(view.getUint16(at, true) << 16).buffer)[0]],
  F32: [4, (view, at) => view.getFloat32(at, true)],
  F64: [8, (view, at) => view.getFloat64(at, true)],
};

/** The tensors of a file's bytes by name: {shape, values}; anything out of its bounds is an error. */
export function readTensors(buffer) {
  const view = new DataView(buffer);
  const length = buffer.byteLength >= 8 ? Number(view.getBigUint64(0, true)) : NaN;
  if (!(length <= Math.min(LARGEST_HEADER, buffer.byteLength - 8))) throw new Error("not a safetensors file");
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const entries = Object.entries(header).filter(([name]) => name !== "__metadata__");
  const read = ([name, entry]) => [name, { shape: entry.shape, values: valuesOf(view, 8 + length, name, entry) }];
  return Object.fromEntries(entries.map(read));
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
