// Models inside the page: their weights came with it, and a worker computes them; no server is asked.

import { compose, fitInside } from "./frames.js";

export class OfflineSource {
  label = "in this page";
  backgrounds = ["black", "distractors"];
  drawsHere = true;
  #calls = []; // in the order in which the worker answers: {resolve, reject}
  #broken = null; // why nothing can be computed any more

  /** `weights` of each model as JSON; `workerText` is the engine's worker as one script. */
  constructor(weights, workerText) {
    this.weights = weights;
    const address = URL.createObjectURL(new Blob([workerText], { type: "text/javascript" }));
    this.worker = new Worker(address);
    this.worker.onmessage = ({ data: { result, error } }) => this.#settle(result, error);
    this.worker.onerror = (event) => this.#fail(event.message || "the worker of the engine could not start");
    URL.revokeObjectURL(address);
  }

  async open() {
    const facts = await Promise.all(this.weights.map((model) => this.#call("load", model)));
    this.models = facts.map(({ model, ...rest }) => ({ name: model, ...rest }));
    return this;
  }

  /** The view of what `model` says about `subject`: {input}, a scene of the model's own size, or any picture, fitted. */
  async look(model, { input, picture }, question) {
    if (input !== undefined) return this.#call("look", input, question, model.name);
    const [side] = model.size;
    const fit = fitInside(picture, side);
    return onPicture(await this.#call("look", pixelsOf(picture, fit, side), question, model.name), picture, fit.canvas);
  }

  #call(verb, ...given) {
    if (this.#broken) return Promise.reject(new Error(this.#broken));
    return new Promise((resolve, reject) => {
      this.#calls.push({ resolve, reject });
      this.worker.postMessage({ verb, given });
    });
  }

  #settle(result, error) {
    const { resolve, reject } = this.#calls.shift();
    if (error === undefined) resolve(result);
    else reject(new Error(error));
  }

  /** Nothing more will come: whatever is under way or waits is refused, and so is what comes later. */
  #fail(message) {
    this.#broken = message;
    for (const { reject } of this.#calls.splice(0)) reject(new Error(message));
  }
}

/** RGB between 0 and 1 of the picture laid into a black square. */
function pixelsOf(picture, fit, side) {
  let rgba = picture.rgba;
  if (picture.width !== side || picture.height !== side) {
    const canvas = new OffscreenCanvas(side, side);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.imageSmoothingQuality = "high";
    context.fillRect(0, 0, side, side);
    context.drawImage(picture.image, fit.left, fit.top, fit.width, fit.height);
    rgba = context.getImageData(0, 0, side, side).data;
  }
  return new Float32Array(3 * side * side).map((_, at) => rgba[4 * Math.floor(at / 3) + (at % 3)] / 255);
}

/** The view with its frames leading on to the picture that was fitted into the model's input. */
function onPicture(view, picture, canvas) {
  const placed = (entry) => ({ ...entry, frame: compose(canvas, entry.frame) });
  return {
    ...view,
    picture: { width: picture.width, height: picture.height, png: null },
    looks: view.looks.map(placed),
    total: placed(view.total),
  };
}
