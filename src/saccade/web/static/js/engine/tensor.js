// Feature maps and the numbers they are made of: how weights are read from text, and maps written to it.

/** A map of cells, row by row; the channels of a cell lie side by side, so a row of a kernel is one run of numbers. */
export class FeatureMap {
  constructor(height, width, channels, data = new Float32Array(height * width * channels)) {
    this.height = height;
    this.width = width;
    this.channels = channels;
    this.data = data;
  }

  /** The same map with `border` cells of zeros around it. */
  padded(border) {
    if (border === 0) return this;
    const around = new FeatureMap(this.height + 2 * border, this.width + 2 * border, this.channels);
    const run = this.width * this.channels;
    for (let y = 0; y < this.height; y++) {
      const to = ((y + border) * around.width + border) * this.channels;
      around.data.set(this.data.subarray(y * run, (y + 1) * run), to);
    }
    return around;
  }
}

/** Base64 of little-endian float32, as typed arrays hold them on every machine that has a browser. */
export function floatsFromBase64(text) {
  return new Float32Array(bytesFromBase64(text).buffer);
}

/** The inverse of `floatsFromBase64`. */
export function base64FromFloats(floats) {
  const bytes = new Uint8Array(floats.buffer, floats.byteOffset, floats.byteLength);
  const parts = [];
  for (let start = 0; start < bytes.length; start += 8192) {
    parts.push(String.fromCharCode(...bytes.subarray(start, start + 8192)));
  }
  return btoa(parts.join(""));
}

/** A matrix of stored weights, row by row: float16, float32, or int16 with a float32 scale for each row. */
export function matrixFromStored({ rows, columns, type, scales, values }) {
  if (type === "float32") return checked(floatsFromBase64(values), rows, columns);
  const stored = new Uint16Array(bytesFromBase64(values).buffer);
  checked(stored, rows, columns);
  if (type === "float16") return Float32Array.from(stored, numberFromHalf);
  const scale = floatsFromBase64(scales);
  return Float32Array.from(new Int16Array(stored.buffer), (whole, at) => whole * scale[Math.floor(at / columns)]);
}

function checked(numbers, rows, columns) {
  if (numbers.length === rows * columns) return numbers;
  throw new Error(`a matrix of ${rows}×${columns} has ${numbers.length} numbers`);
}

/** The number that 16 bits of IEEE 754 mean: sign, 5 bits of exponent, 10 of fraction. */
function numberFromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
}

function bytesFromBase64(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}
