// All acts of a trace as one map: their product, their mean, or the last of them, as the model's kind has it.

import { apply, project } from "./frames.js";

const FINEST = 128; // the longer side of a total in cells, as the server sends it

/** The total ({grid, frame, weights}) of `looks` over a picture of `size`; null where no look lies on a picture. */
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
      weights = weights && how !== "last" ? weights.map((value, at) => joined(value, map[at], how)) : map;
      count += 1;
    }
  }
  if (!weights) return null;
  if (how === "mean") weights = weights.map((value) => value / count);
  return {
    grid: [height, width],
    frame: [[size.width / width, 0, 0], [0, size.height / height, 0]],
    ...(attended.length && attended.every(({ base }) => base) ? { base: 1 } : {}),
    weights,
  };
}

function joined(before, now, how) {
  return how === "product" ? before * now : before + now;
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
