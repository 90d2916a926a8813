// Glimpses on the picture: numbered dots where they fell, in order, the latest of them bright.

import { apply } from "./frames.js";

/** Dots at the cells `path` of `map`, painted over `picture` on `area`; glimpses of the same cell share one. */
export function drawPath(context, area, picture, map, path) {
  const dots = new Map();
  path.forEach((cell, order) => dots.set(cell, [...(dots.get(cell) ?? []), order + 1]));
  const columns = map.grid[1];
  const at = (cell) => {
    const [x, y] = apply(map.frame, (cell % columns) + 0.5, Math.floor(cell / columns) + 0.5);
    return [area.x + (x * area.width) / picture.width, area.y + (y * area.height) / picture.height];
  };
  const radius = Math.max(9, area.width / 34);
  context.save();
  context.lineWidth = radius / 6;
  context.strokeStyle = "rgb(0 0 0 / 0.7)";
  context.beginPath();
  for (const cell of path) context.lineTo(...at(cell));
  context.stroke();
  for (const [cell, numbers] of dots) drawDot(context, at(cell), radius, numbers, numbers.includes(path.length));
  context.restore();
}

function drawDot(context, [x, y], radius, numbers, isLatest) {
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.fillStyle = isLatest ? "#ffffff" : "rgb(255 255 255 / 0.6)";
  context.fill();
  context.stroke();
  context.fillStyle = "#16191f";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.font = `600 ${Math.round(radius * 1.2)}px system-ui, sans-serif`;
  context.fillText(numbers.join(" "), x, y, 1.7 * radius);
}
