// Painting a picture with an act over it onto a canvas: the one routine behind the stage, the strip and the PNG.

import { heat } from "./colours.js";
import { apply, project } from "./frames.js";

const FINEST = 256; // maps are smooth, so more points than this would not be seen

/**
 * Paint `act` (or nothing) over `picture` ({image, width, height}) on the whole of `context`'s canvas area.
 *
 * `style` is {palette, opacity, cells}; `area` {x, y, width, height} in canvas pixels.
 */
export function paintAct(context, area, picture, act, style) {
  context.save();
  context.beginPath();
  context.rect(area.x, area.y, area.width, area.height);
  context.clip();
  context.drawImage(act?.map ? paled(picture, style.opacity) : picture.image, area.x, area.y, area.width, area.height);
  if (act?.map) drawMap(context, area, picture, act.map, style);
  for (const box of act?.boxes ?? (act?.box ? [act.box] : [])) drawBox(context, area, picture, box);
  if (act?.map && act.choice !== undefined) drawChoice(context, area, picture, act);
  if (act?.map && act.path) drawPath(context, area, picture, act.map, act.path);
  context.restore();
}

/** The outline of a mask (bytes 0 or 1, one for each pixel of the picture). */
export function paintOutline(context, area, evidence) {
  const { width, height, mask } = evidence;
  const [scaleX, scaleY] = [area.width / width, area.height / height];
  const inside = (x, y) => x >= 0 && y >= 0 && x < width && y < height && mask[y * width + x];
  const edges = new Path2D();
  const line = (x0, y0, x1, y1) => {
    edges.moveTo(area.x + x0 * scaleX, area.y + y0 * scaleY);
    edges.lineTo(area.x + x1 * scaleX, area.y + y1 * scaleY);
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
  strokeTwice(context, edges, Math.max(1, area.width / 320));
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

function drawMap(context, area, picture, map, style) {
  const low = map.low || 0;
  const range = (map.high ?? map.peak) - low || 1;
  if (style.cells) return drawCells(context, area, picture, map, style, range, low);
  const scale = Math.min(1, FINEST / Math.max(area.width, area.height));
  const [width, height] = [area.width, area.height].map((side) => Math.max(1, Math.round(side * scale)));
  const laid = project(map, picture, width, height).map((value) => Math.min(1, Math.max(0, (value - low) / range)));
  const pixels = new ImageData(width, height);
  heat(laid, style.palette, style.opacity, pixels.data);
  const sheet = new OffscreenCanvas(width, height);
  sheet.getContext("2d").putImageData(pixels, 0, 0);
  context.drawImage(sheet, area.x, area.y, area.width, area.height);
}

/** The cells themselves, flat, where they lie on the picture; edge cells are not extended. */
function drawCells(context, area, picture, map, style, range, low) {
  const [rows, columns] = map.grid;
  const pixels = new ImageData(columns, rows);
  const values = map.values.map((value) => Math.min(1, Math.max(0, (value - low) / range)));
  heat(values, style.palette, style.opacity, pixels.data);
  const sheet = new OffscreenCanvas(columns, rows);
  sheet.getContext("2d").putImageData(pixels, 0, 0);
  const [[a, b, tx], [c, d, ty]] = map.frame;
  const [scaleX, scaleY] = [area.width / picture.width, area.height / picture.height];
  context.save();
  context.translate(area.x, area.y);
  context.scale(scaleX, scaleY);
  context.transform(a, c, b, d, tx, ty);
  context.imageSmoothingEnabled = false;
  context.drawImage(sheet, 0, 0);
  context.restore();
}

function drawBox(context, area, picture, [x0, y0, x1, y1]) {
  const [scaleX, scaleY] = [area.width / picture.width, area.height / picture.height];
  const path = new Path2D();
  path.rect(area.x + x0 * scaleX, area.y + y0 * scaleY, (x1 - x0) * scaleX, (y1 - y0) * scaleY);
  strokeTwice(context, path, Math.max(1.5, area.width / 240));
}

/** A ring around the cell that was chosen. */
function drawChoice(context, area, picture, act) {
  const columns = act.map.grid[1];
  const [x, y] = apply(act.map.frame, (act.choice % columns) + 0.5, Math.floor(act.choice / columns) + 0.5);
  const path = new Path2D();
  path.arc(
    area.x + (x * area.width) / picture.width,
    area.y + (y * area.height) / picture.height,
    area.width / 40,
    0,
    7,
  );
  strokeTwice(context, path, Math.max(1.5, area.width / 240));
}

/** Light on dark, so that the line is seen on any picture. */
function strokeTwice(context, path, width) {
  context.lineWidth = 2.2 * width;
  context.strokeStyle = "rgb(0 0 0 / 0.55)";
  context.stroke(path);
  context.lineWidth = width;
  context.strokeStyle = "#ffffff";
  context.stroke(path);
}

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
