// The large picture of a lens: the act over it, the evidence, the selected digit, and the cell under the pointer.

import { element } from "./dom.js";
import { apply } from "./frames.js";
import { paintAct, paintOutline, strokeWhite } from "./paint.js";

const RESOLUTION = 640; // pixels of the longer side; sharp on dense screens, light enough to repaint while dragging

export class Stage {
  /** `element` is the canvas; what happens on it is told in pixels of the picture. */
  constructor() {
    this.element = element("canvas", { class: "stage", tabindex: "0", "data-part": "stage" });
    this.size = { width: 1, height: 1 };
  }

  /** Paint everything; `shown` is {picture, act, style, evidence, selection, cell, ring}. */
  paint(shown) {
    const { picture } = shown;
    const scale = RESOLUTION / Math.max(picture.width, picture.height);
    const area = { x: 0, y: 0, width: Math.round(picture.width * scale), height: Math.round(picture.height * scale) };
    this.size = picture;
    if (this.element.width !== area.width || this.element.height !== area.height) {
      Object.assign(this.element, { width: area.width, height: area.height });
      this.element.style.aspectRatio = `${area.width} / ${area.height}`;
    }
    const context = this.element.getContext("2d");
    context.clearRect(0, 0, area.width, area.height);
    paintAct(context, area, picture, shown.act, shown.style);
    if (shown.evidence) paintOutline(context, area, shown.evidence);
    if (shown.selection) drawSelection(context, scale, shown.selection);
    if (shown.ring) drawRing(context, scale, shown.ring);
    else if (shown.cell) drawCell(context, scale, shown.cell, shown.act.map);
  }

  /**
   * Say what is seen and what keys do: those of the brush (`keys`), or else those that move the selected digit. A screen
   * reader hands on keys to the role "application" only.
   */
  describe(seen, selection, keys = "") {
    const does = keys || (selection ? `arrow keys move the ${selection.digit}` : "");
    this.element.setAttribute("role", does ? "application" : "img");
    this.element.setAttribute("aria-label", does ? `${seen}; ${does}` : seen);
  }

  /** Where an event happened, in pixels of the picture, which lies in the middle where its place is wider or higher. */
  at(event) {
    const box = this.element.getBoundingClientRect();
    const { width, height } = this.size;
    const scale = Math.min(box.width / width, box.height / height);
    return {
      x: (event.clientX - box.left - box.width / 2) / scale + width / 2,
      y: (event.clientY - box.top - box.height / 2) / scale + height / 2,
    };
  }
}

function drawSelection(context, scale, digit) {
  const [x, y, side] = [digit.x * scale, digit.y * scale, digit.size * scale];
  context.save();
  context.lineWidth = 2;
  context.strokeStyle = "rgb(0 0 0 / 0.6)";
  context.strokeRect(x, y, side, side);
  context.setLineDash([7, 5]);
  context.strokeStyle = "#ffffff";
  context.strokeRect(x, y, side, side);
  context.setLineDash([]);
  context.fillStyle = "#ffffff";
  context.beginPath();
  context.arc(x + side, y + side, 8, 0, 7);
  context.fill();
  context.stroke();
  context.restore();
}

/** The borders of one cell, wherever its frame puts them. */
function drawCell(context, scale, { row, column }, map) {
  const corners = [[0, 0], [1, 0], [1, 1], [0, 1]].map(([x, y]) => apply(map.frame, column + x, row + y));
  const path = new Path2D();
  corners.forEach(([x, y]) => path.lineTo(x * scale, y * scale));
  path.closePath();
  strokeWhite(context, path);
}

/** The brush: what lies inside will be changed. */
function drawRing(context, scale, { x, y, radius }) {
  const path = new Path2D();
  path.arc(x * scale, y * scale, radius * scale, 0, 7);
  strokeWhite(context, path);
}
