// Scenes of coloured digits: what is in them, and their rendering in the page, to the pixel as the generator does it.
//
// A digit is {digit, glyph, x, y, size, colour}: the box of `size` pixels with its corner at (x, y). Where digits
// overlap, the later one is seen. Clutter is drawn after the recipe of the distractors (crops of glyphs, coloured,
// added to the black) but with the page's own random numbers.
// Handwritten digits come from one sheet, a row for each digit.

import { COLOURS } from "./colours.js";

export const SIDE = 100;
export const SMALLEST = 14;
export const LARGEST = 84;
export const VARIANTS = 8; // of each digit on the sheet
const GLYPH = 28;
const UNIT = 256;
const CLUTTER = { count: 17, crop: 5, scale: [0.5, 3] };

/** Five to nine different digits of any colour: a scene for whoever does not say what it learned from. */
const USUAL = { digits: [5, 9], sizes: [[SMALLEST, LARGEST]], colours: Object.keys(COLOURS), repeats: false };
const ROOMY = [SMALLEST + 4, 58]; // sizes that are seen well and leave room for the others

/** Digits as a model has learned from (see examples.js), at random places that do not touch. */
export function randomScene(seed, background, trained) {
  const { digits: range, sizes, colours, repeats } = trained ?? USUAL;
  const random = randomNumbers(seed);
  const pick = (items) => items[Math.floor(items.length * random())];
  const all = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
  const order = repeats ? all.map(() => pick(all)) : shuffled(all, random);
  const digits = [];
  for (const digit of order.slice(0, range[0] + Math.floor((range[1] - range[0] + 1) * random()))) {
    for (let tries = 0; tries < 60; tries++) {
      const [low, high] = pick(sizes).map((side) => bounded(side, ...ROOMY));
      const size = Math.floor(low + random() ** 1.6 * (high - low));
      const [x, y] = [Math.floor(random() * (SIDE - size + 1)), Math.floor(random() * (SIDE - size + 1))];
      const free = digits.every(
        (other) => x + size <= other.x || other.x + other.size <= x || y + size <= other.y || other.y + other.size <= y,
      );
      if (!free) continue;
      digits.push({ digit, glyph: Math.floor(VARIANTS * random()), x, y, size, colour: pick(colours) });
      break;
    }
  }
  return { digits, background, seed };
}

/** A digit with `changes`, kept inside the picture and within the sizes that models have seen. */
export function changed(digit, changes) {
  const next = { ...digit, ...changes };
  next.size = bounded(Math.round(next.size), SMALLEST, LARGEST);
  next.x = bounded(Math.round(next.x), 0, SIDE - next.size);
  next.y = bounded(Math.round(next.y), 0, SIDE - next.size);
  return next;
}

/** {width, height, rgba, masks}: the picture, and for each digit the pixels (bytes 0 or 1) where it is seen. */
export function renderScene(scene, glyphs) {
  const rgb = scene.background === "distractors" ? clutter(scene.seed, glyphs) : new Uint8Array(3 * SIDE * SIDE);
  const owner = new Int16Array(SIDE * SIDE).fill(-1);
  const ink = new Uint8Array(SIDE * SIDE);
  scene.digits.forEach((digit, number) => {
    const patch = resizeGlyph(glyphs(digit.digit, digit.glyph), digit.size);
    eachPixel(patch, digit.size, digit.x, digit.y, (at, value) => {
      owner[at] = number;
      ink[at] = value;
    });
  });
  const masks = scene.digits.map(() => new Uint8Array(SIDE * SIDE));
  for (let at = 0; at < owner.length; at++) {
    if (owner[at] < 0) continue;
    masks[owner[at]][at] = 1;
    const colour = COLOURS[scene.digits[owner[at]].colour];
    for (let channel = 0; channel < 3; channel++) {
      rgb[3 * at + channel] = by255(ink[at] * colour[channel] + (255 - ink[at]) * rgb[3 * at + channel]);
    }
  }
  return { width: SIDE, height: SIDE, rgba: withAlpha(rgb), masks };
}

function clutter(seed, glyphs) {
  const random = randomNumbers(seed);
  const rgb = new Uint8ClampedArray(3 * SIDE * SIDE); // sums stop at 255
  for (let number = 0; number < CLUTTER.count; number++) {
    const glyph = glyphs(Math.floor(10 * random()), Math.floor(VARIANTS * random()));
    const [left, top] = [Math.floor(random() * (GLYPH - CLUTTER.crop)), Math.floor(random() * (GLYPH - CLUTTER.crop))];
    const [low, high] = CLUTTER.scale;
    const size = Math.floor(CLUTTER.crop * (low + (high - low) * random()));
    const colour = Object.values(COLOURS)[Math.floor(5 * random())];
    const [x, y] = [Math.floor(random() * (SIDE + 1 - size)), Math.floor(random() * (SIDE + 1 - size))];
    const crop = new Uint8Array(CLUTTER.crop ** 2).map(
      (_, i) => glyph[(top + Math.floor(i / CLUTTER.crop)) * GLYPH + left + (i % CLUTTER.crop)],
    );
    eachPixel(resizeGlyph(crop, size, CLUTTER.crop), size, x, y, (at, value) => {
      for (let channel = 0; channel < 3; channel++) rgb[3 * at + channel] += by255(value * colour[channel]);
    });
  }
  return new Uint8Array(rgb);
}

/** `visit(position in the picture, ink)` for every pixel of a patch that has ink. */
function eachPixel(patch, size, x, y, visit) {
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      const value = patch[row * size + column];
      if (value) visit((y + row) * SIDE + x + column, value);
    }
  }
}

/** round(product / 255), as the generator computes it. */
function by255(product) {
  return ((product + 128) * 257) >> 16;
}

function withAlpha(rgb) {
  const rgba = new Uint8ClampedArray((rgb.length / 3) * 4).fill(255);
  for (let at = 0; at < rgb.length / 3; at++) rgba.set(rgb.subarray(3 * at, 3 * at + 3), 4 * at);
  return rgba;
}

function shuffled(items, random) {
  for (let i = items.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [items[i], items[j]] = [items[j], items[i]];
  }
  return items;
}

function bounded(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

/** A function that returns the next number in [0, 1): a 32-bit counter, stirred by multiply and shift (SplitMix). */
function randomNumbers(seed) {
  let counter = seed >>> 0;
  return () => {
    counter = (counter + 0x9e3779b9) >>> 0;
    let bits = counter;
    bits = Math.imul(bits ^ (bits >>> 16), 0x21f0aaad);
    bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97);
    return ((bits ^ (bits >>> 15)) >>> 0) / 2 ** 32;
  };
}

/** The glyphs of a sheet picture: `sheet(digit, variant)` is 28 × 28 bytes of ink. */
export async function loadGlyphs(url) {
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  return (digit, variant) => {
    const { data } = context.getImageData((variant % VARIANTS) * GLYPH, digit * GLYPH, GLYPH, GLYPH);
    return data.filter((_, index) => index % 4 === 0);
  };
}

/**
 * A square glyph at another size: the antialiased triangle filter of the scene generator, to the last bit.
 * Both passes use whole coefficients that sum to 256 and end in ⌊(sum + 128) / 256⌋.
 */
export function resizeGlyph(ink, size, source = GLYPH) {
  const filters = filtersFor(source, size);
  return filtered(filtered(ink, source, filters), source, filters);
}

/** Every row of `ink` resized, as a column of the result: twice, and rows are rows again. */
function filtered(ink, source, filters) {
  const rows = ink.length / source;
  const result = new Uint8Array(rows * filters.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < filters.length; column++) {
      const { first, weights } = filters[column];
      let sum = UNIT / 2;
      for (let k = 0; k < weights.length; k++) sum += weights[k] * ink[row * source + first + k];
      result[column * rows + row] = sum >> 8;
    }
  }
  return result;
}

const known = new Map();

function filtersFor(source, size) {
  const key = `${source}:${size}`;
  if (!known.has(key)) known.set(key, Array.from({ length: size }, (_, row) => triangle(source, size, row)));
  return known.get(key);
}

/** First source pixel and whole weights, summing to 256, of output pixel `row`. */
function triangle(source, size, row) {
  const step = source / size;
  const reach = Math.max(step, 1);
  const centre = (row + 0.5) * step;
  const first = Math.max(0, Math.trunc(centre - reach + 0.5));
  const last = Math.min(source, Math.trunc(centre + reach + 0.5));
  let exact = [];
  for (let pixel = first; pixel < last; pixel++) exact.push(Math.max(0, 1 - Math.abs(pixel + 0.5 - centre) / reach));
  const total = exact.reduce((sum, weight) => sum + weight, 0);
  exact = exact.map((weight) => (weight * UNIT) / total);
  const weights = exact.map(Math.trunc);
  // Largest remainder: the rounding that keeps the sum exact, so that flat areas stay flat.
  const rest = (i) => Math.round((weights[i] - exact[i]) * 1e9);
  const order = weights.map((_, i) => i).sort((i, j) => rest(i) - rest(j) || i - j);
  const missing = UNIT - weights.reduce((sum, weight) => sum + weight, 0);
  const rounded = [...weights];
  for (const i of order.slice(0, missing)) rounded[i] += 1;
  return { first, weights: rounded };
}
