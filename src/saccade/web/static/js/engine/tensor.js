// Feature maps and the numbers they are made of: how weights are read from text.

import { bytesFromBase64, floatsFromBase64, numberFromHalf } from "../floats.js";

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
