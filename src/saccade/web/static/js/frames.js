// Affine maps between grids and pictures, and the projection of a map onto a picture.
//
// The conventions are those of saccade's geometry: a grid of W cells spans [0, W], cell k has its centre at k + 0.5,
// and a frame [[a, b, tx], [c, d, ty]] goes from cells to pixels. Between centres values are bilinear; beyond the
// outermost centres the edge cells go on to the border.

export const IDENTITY = [[1, 0, 0], [0, 1, 0]];

/** The frame that applies `inner` first, then `outer`. */
export function compose(outer, inner) {
  return outer.map(([x, y, shift]) => [
    x * inner[0][0] + y * inner[1][0],
    x * inner[0][1] + y * inner[1][1],
    x * inner[0][2] + y * inner[1][2] + shift,
  ]);
}

/** The frame that undoes `frame`. */
function invert([[a, b, tx], [c, d, ty]]) {
  const det = a * d - b * c;
  if (!det) throw new Error("a frame that cannot be inverted");
  return [[d / det, -b / det, (b * ty - d * tx) / det], [-c / det, a / det, (c * tx - a * ty) / det]];
}

/** The point (x, y) through `frame`. */
export function apply([[a, b, tx], [c, d, ty]], x, y) {
  return [a * x + b * y + tx, c * x + d * y + ty];
}

/** The frame from an area of the size `from` to one of the size `to`. */
export function stretch(from, to) {
  return [[to.width / from.width, 0, 0], [0, to.height / from.height, 0]];
}

/** Where on the picture the centre of a map's cell is. */
export function centreOf(map, cell) {
  const columns = map.grid[1];
  return apply(map.frame, (cell % columns) + 0.5, Math.floor(cell / columns) + 0.5);
}

/** Values of `map` ({values, grid, frame}) on `width` × `height` pixels laid over a picture of `size`. */
export function project(map, size, width, height) {
  const [rows, columns] = map.grid;
  const [[a, b, tx], [c, d, ty]] = compose(invert(map.frame), stretch({ width, height }, size));
  const values = map.values;
  const laid = new Float32Array(width * height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const column = clamp(a * (x + 0.5) + b * (y + 0.5) + tx - 0.5, columns - 1);
      const row = clamp(c * (x + 0.5) + d * (y + 0.5) + ty - 0.5, rows - 1);
      const [left, top] = [Math.floor(column), Math.floor(row)];
      const right = left + 1 < columns ? 1 : 0;
      const below = top + 1 < rows ? columns : 0;
      const [across, down] = [column - left, row - top];
      const at = top * columns + left;
      const upper = values[at] + across * (values[at + right] - values[at]);
      const lower = values[at + below] + across * (values[at + below + right] - values[at + below]);
      laid[y * width + x] = upper + down * (lower - upper);
    }
  }
  return laid;
}

/** The nearest cell to the pixel (x, y) of the picture: {row, column, value}. */
export function cellAt(map, x, y) {
  const [rows, columns] = map.grid;
  const [across, down] = apply(invert(map.frame), x, y);
  const [column, row] = [clamp(Math.floor(across), columns - 1), clamp(Math.floor(down), rows - 1)];
  return { row, column, value: map.values[row * columns + column] };
}

/** The whole of a picture of `size` laid undistorted into a square of `side`, centred: where, and the way back. */
export function fitInside(size, side) {
  const ratio = Math.min(side / size.width, side / size.height);
  const width = Math.min(side, Math.max(1, Math.round(size.width * ratio)));
  const height = Math.min(side, Math.max(1, Math.round(size.height * ratio)));
  const [left, top] = [Math.floor((side - width) / 2), Math.floor((side - height) / 2)];
  const [x, y] = [size.width / width, size.height / height];
  return { left, top, width, height, canvas: [[x, 0, -left * x], [0, y, -top * y]] };
}

export function clamp(value, highest) {
  return value < 0 ? 0 : value > highest ? highest : value;
}

const FINEST = 128; // the longer side of a total in cells, as the server sends it

/**
 * The total ({grid, frame, weights}) of `looks` over a picture of `size`: their product, mean or last, as `how` says;
 * null where no look lies on a picture.
 */
export function totalOf(looks, how, size) {
  const spatial = looks.filter((look) => look.grid && look.role !== "input");
  const attended = spatial.filter((look) => look.role !== "policy" && look.role !== "derived");
  const shrink = Math.max(1, Math.max(size.width, size.height) / FINEST);
  const [width, height] = [size.width, size.height].map((side) => Math.max(1, Math.round(side / shrink)));
  let [weights, count] = [null, 0];
  for (const look of attended.length ? attended : spatial) {
    for (let step = 0; step < look.steps; step++) {
      if (look.active && !look.active[step]) continue;
      const own = look.weights ? project(stepOf(look, step), size, width, height) : covered(look, size, width, height);
      const map = look.base ? own.map((value) => look.base + value) : own; // a residual mask multiplies by 1 + M
      if (!weights || how === "last") weights = map;
      else weights = weights.map((value, at) => (how === "product" ? value * map[at] : value + map[at]));
      count += 1;
    }
  }
  if (!weights) return null;
  if (how === "mean") weights = weights.map((value) => value / count);
  return {
    grid: [height, width],
    frame: stretch({ width, height }, size),
    ...(attended.length && attended.every(({ base }) => base) ? { base: 1 } : {}),
    weights,
  };
}

function stepOf({ weights, grid, frame }, step) {
  const cells = grid[0] * grid[1];
  return { values: weights.subarray(step * cells, (step + 1) * cells), grid, frame };
}

/** The share of every pixel that lies inside an upright crop. */
function covered({ grid, frame }, size, width, height) {
  const [x0, y0] = apply(frame, 0, 0);
  const [x1, y1] = apply(frame, grid[1], grid[0]);
  const columns = shares((x0 * width) / size.width, (x1 * width) / size.width, width);
  const rows = shares((y0 * height) / size.height, (y1 * height) / size.height, height);
  return new Float32Array(width * height).map((_, at) => columns[at % width] * rows[Math.floor(at / width)]);
}

function shares(start, stop, count) {
  const inside = (at) => Math.min(at + 1, stop) - Math.max(at, start);
  return Float32Array.from({ length: count }, (_, at) => Math.min(1, Math.max(0, inside(at))));
}
