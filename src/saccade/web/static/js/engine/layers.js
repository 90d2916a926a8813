// The layers of the small networks: convolutions that keep their sums in registers, and what stands around them.
//
// A convolution is the whole cost of a look, so it works in blocks: two cells times four outputs, whose sums stay in local
// variables while the inputs under a row of the kernel, which lie side by side, are read once.

import { bytesFromBase64, floatsFromBase64, numberFromHalf } from "../views.js";

const BLOCK = 4; // outputs that are computed together

/** A square convolution, behind a norm where there is one; its weights lie in the order in which they are read. */
export class Convolution {
  constructor({ side, inputs, outputs, weight, bias }, norm = null) {
    this.side = side;
    this.outputs = outputs;
    this.bias = floatsFromBase64(bias);
    const matrix = matrixFromStored(weight);
    if (norm) fold(norm, matrix, this.bias);
    this.weights = inBlocks(matrix, outputs, side * side * inputs);
  }
}

/** Change weights and bias so that they do what a scale and a shift of each input channel did before them. */
function fold({ scale, shift }, matrix, bias) {
  const scales = floatsFromBase64(scale);
  const shifts = floatsFromBase64(shift);
  const columns = matrix.length / bias.length;
  for (let output = 0; output < bias.length; output++) {
    let shifted = bias[output];
    for (let column = 0; column < columns; column++) {
      const at = output * columns + column;
      shifted += matrix[at] * shifts[column % shifts.length];
      matrix[at] *= scales[column % scales.length];
    }
    bias[output] = shifted;
  }
}

/** Matrix (outputs × columns) → for each block of outputs, column by column, the weights of the block. */
function inBlocks(matrix, outputs, columns) {
  const blocked = new Float32Array(matrix.length);
  let to = 0;
  for (let first = 0; first < outputs; first += BLOCK) {
    for (let column = 0; column < columns; column++) {
      for (let output = first; output < first + BLOCK; output++) blocked[to++] = matrix[output * columns + column];
    }
  }
  return blocked;
}

/** A stage: valid convolution, 2×2 maximum (an odd border is dropped), nothing below zero. */
export function stage(input, layer) {
  const [height, width] = [input.height, input.width].map((side) => (side - layer.side + 1) >> 1);
  if (height < 1 || width < 1) throw new Error(`${input.height}×${input.width} cells are too few for a stage`);
  const { data: cells, width: across, channels } = convolve(input, layer, 0);
  const result = new FeatureMap(height, width, channels);
  const down = across * channels;
  for (let y = 0, to = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      for (let at = 2 * y * down + 2 * x * channels, end = at + channels; at < end; at++, to++) {
        const highest = Math.max(cells[at], cells[at + channels], cells[at + down], cells[at + down + channels]);
        result.data[to] = Math.max(0, highest);
      }
    }
  }
  return result;
}

/** A convolution with `border` cells of zeros around the input; by default the grid stays as it is. */
export function convolve(input, layer, border = layer.side >> 1) {
  const { weights, bias, outputs, side } = layer;
  const around = input.padded(border);
  const { data: cells, channels } = around;
  const [height, width] = [around.height - side + 1, around.width - side + 1];
  const result = new FeatureMap(height, width, outputs);
  const run = side * channels;
  const down = around.width * channels;
  for (let first = 0, block = 0; first < outputs; first += BLOCK, block += BLOCK * side * run) {
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x += 2) {
        const beside = Math.min(1, width - 1 - x); // the last of an odd row is computed with itself
        const step = beside * channels;
        // two cells times four outputs
        let a0 = bias[first], a1 = bias[first + 1], a2 = bias[first + 2], a3 = bias[first + 3];
        let b0 = a0, b1 = a1, b2 = a2, b3 = a3;
        let weight = block;
        for (let row = 0, start = (y * around.width + x) * channels; row < side; row++, start += down) {
          for (let at = start, end = start + run; at < end; at++, weight += BLOCK) {
            const w0 = weights[weight], w1 = weights[weight + 1], w2 = weights[weight + 2], w3 = weights[weight + 3];
            const a = cells[at], b = cells[at + step];
            a0 += a * w0; a1 += a * w1; a2 += a * w2; a3 += a * w3;
            b0 += b * w0; b1 += b * w1; b2 += b * w2; b3 += b * w3;
          }
        }
        const to = (y * width + x) * outputs + first;
        const next = to + beside * outputs;
        result.data[to] = a0; result.data[to + 1] = a1; result.data[to + 2] = a2; result.data[to + 3] = a3;
        result.data[next] = b0; result.data[next + 1] = b1; result.data[next + 2] = b2; result.data[next + 3] = b3;
      }
    }
  }
  return result;
}

/** One linear layer. */
export class Linear {
  constructor({ weight, bias }) {
    this.weights = floatsFromBase64(weight); // outputs × inputs
    this.bias = floatsFromBase64(bias);
  }

  apply(feature) {
    return this.bias.map((start, output) => {
      let sum = start;
      for (let input = 0; input < feature.length; input++) {
        sum += this.weights[output * feature.length + input] * feature[input];
      }
      return sum;
    });
  }
}

/** Shares that add up to one. */
export function softmax(scores) {
  const highest = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const shares = Float64Array.from(scores, (score) => Math.exp(score - highest));
  const sum = shares.reduce((a, b) => a + b, 0);
  return Float32Array.from(shares, (share) => share / sum);
}

/** How far each gate is open. */
export function sigmoid(scores) {
  return scores.map((score) => 1 / (1 + Math.exp(-score)));
}

/** Every cell times its weight. */
export function gated(features, weights) {
  const { height, width, channels } = features;
  const data = features.data.map((value, index) => value * weights[Math.floor(index / channels)]);
  return new FeatureMap(height, width, channels, data);
}

/** The sum over all cells, each times its weight: one number for each channel. */
export function weightedSum(features, weights) {
  const sum = new Float64Array(features.channels);
  for (let cell = 0, at = 0; cell < weights.length; cell++) {
    for (let channel = 0; channel < sum.length; channel++, at++) sum[channel] += weights[cell] * features.data[at];
  }
  return sum;
}

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
