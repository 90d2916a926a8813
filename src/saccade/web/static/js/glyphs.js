// Handwritten digits to compose scenes of: one sheet, a row for each digit, and their resizing in whole numbers.

export const GLYPH = 28;
export const VARIANTS = 8;
const UNIT = 256;

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
  const across = new Uint8Array(source * size); // rows of the source, columns of the result
  for (let row = 0; row < source; row++) {
    for (let column = 0; column < size; column++) {
      const { first, weights } = filters[column];
      let sum = UNIT / 2;
      for (let k = 0; k < weights.length; k++) sum += weights[k] * ink[row * source + first + k];
      across[row * size + column] = sum >> 8;
    }
  }
  const result = new Uint8Array(size * size);
  for (let row = 0; row < size; row++) {
    const { first, weights } = filters[row];
    for (let column = 0; column < size; column++) {
      let sum = UNIT / 2;
      for (let k = 0; k < weights.length; k++) sum += weights[k] * across[(first + k) * size + column];
      result[row * size + column] = sum >> 8;
    }
  }
  return result;
}

const known = new Map();

function filtersFor(source, size) {
  const key = `${source}:${size}`;
  if (!known.has(key))
    known.set(key, Array.from({ length: size }, (_, row) => triangle(source, size, row)));
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
