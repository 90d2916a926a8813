// Painting a picture with an act over it onto a canvas: the one routine behind the stage, the strip and the PNG.
//
// `area` is {x, y, width, height} in canvas pixels, and the whole picture covers it.

import { heat } from "./colours.js";
import { centreOf, project } from "./frames.js";

const FINEST = 256; // maps are smooth, so more points than this would not be seen

/** Paint `act` (or nothing) over `picture` ({image, width, height}); `style` is {palette, opacity, cells}. */
export function paintAct(context, area, picture, act, style) {
  const map = act?.map;
  context.save();
  context.beginPath();
  context.rect(area.x, area.y, area.width, area.height);
  context.clip();
  context.drawImage(map ? paled(picture, style.opacity) : picture.image, area.x, area.y, area.width, area.height);
  if (map && style.cells) drawCells(context, area, picture, map, style);
  else if (map) drawMap(context, area, picture, map, style);
  for (const box of act?.boxes ?? (act?.box ? [act.box] : [])) drawBox(context, area, picture, box);
  if (map && act.choice !== undefined) drawChoice(context, area, picture, act);
  if (map && act.path) drawPath(context, area, picture, map, act.path);
  context.restore();
}

/** The outline of a mask (bytes 0 or 1, one for each pixel of the picture). */
export function paintOutline(context, area, evidence) {
  const { width, height, mask } = evidence;
  const inside = (x, y) => x >= 0 && y >= 0 && x < width && y < height && mask[y * width + x];
  const edges = new Path2D();
  const line = (x0, y0, x1, y1) => {
    edges.moveTo(x0, y0);
    edges.lineTo(x1, y1);
  };
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      if (!mask[y * width + x]) continue;
      if (!inside(x, y - 1)) line(x, y, x + 1, y);
      if (!inside(x, y + 1)) line(x, y + 1, x + 1, y + 1);
      if (!inside(x - 1, y)) line(x, y, x, y + 1);
      if (!inside(x + 1, y)) line(x + 1, y, x + 1, y + 1);
    }
  }
  strokeTwice(context, placed(edges, area, evidence), Math.max(1, area.width / 320));
}

/** A line of white, seen on any picture by its shadow. */
export function strokeWhite(context, path) {
  context.save();
  Object.assign(context, { lineWidth: 2, strokeStyle: "#ffffff", shadowColor: "#000000", shadowBlur: 3 });
  context.stroke(path);
  context.restore();
}

/** The picture pales as the map grows stronger, so that its own colours are not read as weights; made once for each. */
const pale = new WeakMap();

function paled(picture, opacity) {
  const known = pale.get(picture);
  if (known?.opacity === opacity) return known.image;
  const image = new OffscreenCanvas(picture.width, picture.height);
  const context = image.getContext("2d");
  context.filter = `saturate(${1 - opacity / 2})`;
  context.drawImage(picture.image, 0, 0);
  pale.set(picture, { opacity, image });
  return image;
}

/** `values` of a map, row by row, as a picture of its colours. */
function coloured(values, [height, width], { low, high }, style) {
  const range = high - low || 1;
  const shares = values.map((value) => Math.min(1, Math.max(0, (value - low) / range)));
  const pixels = new ImageData(width, height);
  heat(shares, style.palette, style.opacity, pixels.data);
  const sheet = new OffscreenCanvas(width, height);
  sheet.getContext("2d").putImageData(pixels, 0, 0);
  return sheet;
}

function drawMap(context, area, picture, map, style) {
  const scale = Math.min(1, FINEST / Math.max(area.width, area.height));
  const [width, height] = [area.width, area.height].map((side) => Math.max(1, Math.round(side * scale)));
  const sheet = coloured(project(map, picture, width, height), [height, width], map, style);
  context.drawImage(sheet, area.x, area.y, area.width, area.height);
}

/** The cells themselves, flat, where they lie on the picture; edge cells are not extended. */
function drawCells(context, area, picture, map, style) {
  const [[a, b, tx], [c, d, ty]] = map.frame;
  context.save();
  context.transform(...scaling(area, picture));
  context.transform(a, c, b, d, tx, ty);
  context.imageSmoothingEnabled = false;
  context.drawImage(coloured(map.values, map.grid, map, style), 0, 0);
  context.restore();
}

function drawBox(context, area, picture, [x0, y0, x1, y1]) {
  const path = new Path2D();
  path.rect(x0, y0, x1 - x0, y1 - y0);
  strokeTwice(context, placed(path, area, picture), Math.max(1.5, area.width / 240));
}

/** A ring around the cell that was chosen. */
function drawChoice(context, area, picture, { map, choice }) {
  const path = new Path2D();
  path.arc(...onArea(area, picture, centreOf(map, choice)), area.width / 40, 0, 7);
  strokeTwice(context, path, Math.max(1.5, area.width / 240));
}

/** From pixels of the picture to those of the canvas, as canvases have it. */
function scaling({ x, y, width, height }, size) {
  return [width / size.width, 0, 0, height / size.height, x, y];
}

function placed(path, area, size) {
  const moved = new Path2D();
  moved.addPath(path, new DOMMatrix(scaling(area, size)));
  return moved;
}

function onArea(area, size, [x, y]) {
  return [area.x + (x * area.width) / size.width, area.y + (y * area.height) / size.height];
}

/** Light on dark, so that the line is seen on any picture. */
function strokeTwice(context, path, width) {
  for (const [lineWidth, strokeStyle] of [[2.2 * width, "rgb(0 0 0 / 0.55)"], [width, "#ffffff"]]) {
    Object.assign(context, { lineWidth, strokeStyle });
    context.stroke(path);
  }
}

/** Dots at the cells `path` of `map`, in order; glimpses of the same cell share one. */
function drawPath(context, area, picture, map, path) {
  const dots = new Map();
  path.forEach((cell, order) => dots.set(cell, [...(dots.get(cell) ?? []), order + 1]));
  const at = (cell) => onArea(area, picture, centreOf(map, cell));
  const radius = Math.max(9, area.width / 34);
  context.lineWidth = radius / 6;
  context.strokeStyle = "rgb(0 0 0 / 0.7)";
  context.beginPath();
  for (const cell of path) context.lineTo(...at(cell));
  context.stroke();
  for (const [cell, numbers] of dots) drawDot(context, at(cell), radius, numbers, numbers.includes(path.length));
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
