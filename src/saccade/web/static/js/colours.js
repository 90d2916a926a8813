// The colour maps of the page: lightness rises in all of them, so they read without any sense of red and green.

import { weight } from "./dom.js";

export const COLOURS = {
  green: [16, 166, 81],
  yellow: [255, 241, 78],
  white: [224, 224, 224],
  red: [146, 16, 16],
  blue: [16, 98, 192],
};

const ANCHORS = {
  saccade: "#240059 #112783 #00517e #027188 #039191 #04b38f #68cf79 #bde268 #fff19b",
  viridis: "#440154 #472d7b #3b528b #2c728e #21918c #28ae80 #5ec962 #addc30 #fde725",
  cividis: "#00224e #1a386f #434e6c #61656f #7d7c78 #9b9476 #bcae6c #dec958 #fee838",
};

const LEVELS = 512;
const tables = new Map();

export const COLOUR_MAPS = Object.keys(ANCHORS);

/** How much of the picture the colour hides where there is no weight, as a share of what it hides at the peak. */
const FLOOR = 0.45;

/** A colour map as a CSS picture. */
export function gradient(name) {
  return `linear-gradient(to right, ${ANCHORS[name].split(" ").join(", ")})`;
}

/** RGB bytes (3 × LEVELS) of a colour map. */
export function colourTable(name) {
  if (!tables.has(name)) {
    const channels = [1, 3, 5];
    const anchors = ANCHORS[name].split(" ").map((hex) => channels.map((at) => parseInt(hex.slice(at, at + 2), 16)));
    const table = new Uint8ClampedArray(3 * LEVELS);
    for (let level = 0; level < LEVELS; level++) {
      const at = (level / (LEVELS - 1)) * (anchors.length - 1);
      const low = Math.min(Math.floor(at), anchors.length - 2);
      for (let channel = 0; channel < 3; channel++) {
        const [from, to] = [anchors[low][channel], anchors[low + 1][channel]];
        table[3 * level + channel] = from + (at - low) * (to - from);
      }
    }
    tables.set(name, table);
  }
  return tables.get(name);
}

/** RGBA pixels of values between 0 and 1: colour by value, and more of it where there is more weight. */
export function heat(values, name, opacity, into) {
  const table = colourTable(name);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    const at = 3 * Math.round(value * (LEVELS - 1));
    into[4 * i] = table[at];
    into[4 * i + 1] = table[at + 1];
    into[4 * i + 2] = table[at + 2];
    into[4 * i + 3] = 255 * opacity * (FLOOR + (1 - FLOOR) * value);
  }
  return into;
}

/** Write a weight into `cell` and colour it by its share of the `peak`. */
export function paintHeat(cell, value, peak, palette) {
  const table = colourTable(palette);
  const share = peak ? Math.min(1, Math.max(0, value / peak)) : 0;
  const at = 3 * Math.round(share * (LEVELS - 1));
  cell.textContent = weight(value);
  cell.style.backgroundColor = `rgb(${table[at]} ${table[at + 1]} ${table[at + 2]})`;
  cell.style.color = inkOn(table.subarray(at, at + 3));
}

/** Black or white, whichever reads better on `rgb`: their contrast is at least 4.5 on any colour (WCAG 2). */
function inkOn(rgb) {
  const [red, green, blue] = Array.from(rgb, (value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}
