// Models by name: pixels, or what else one reads, and a question in, view JSON out; nothing here knows of workers.

import { softmax } from "./layers.js";
import { viewOf, viewOfSlots } from "./sighting.js";
import { HAttNetModel, SoftModel } from "./networks.js";
import { FeatureMap, matrixFromStored } from "./tensor.js";

const WEIGHTS_SCHEMA = "saccade.page-weights/1";
const MODELS = { soft: SoftModel, hattnet: HAttNetModel };
const TOOLS = { matrix: matrixFromStored, softmax }; // for networks that a family brings along

export class Looker {
  constructor() {
    this.loaded = new Map();
  }

  /** Take in what `saccade.web.page.page_model` made; returns what the model can be asked and can answer. */
  load(weights) {
    if (weights?.schema !== WEIGHTS_SCHEMA) throw new Error(`expected weights of ${WEIGHTS_SCHEMA}, found ${weights?.schema}`);
    const { stages, attention, head, layers, ...facts } = weights;
    const network = facts.runtime ? ofFamily(weights) : ofEngine(facts.kind, { stages, attention, head });
    this.loaded.delete(facts.model); // so that it becomes the last
    this.loaded.set(facts.model, { facts, network, pixels: null, encoding: null });
    return facts;
  }

  /** Answer a question about `input`: RGB 0..1 of a picture, row by row, as many as the model's input has; or JSON. */
  look(input, question, model = [...this.loaded.keys()].at(-1)) {
    const known = this.loaded.get(model);
    if (!known) throw new Error(`no model '${model}'; loaded: ${[...this.loaded.keys()].join(", ") || "none"}`);
    const { facts, network } = known;
    if (facts.runtime) return viewOfSlots(facts, network.answer(input, question));
    const number = facts.queries.indexOf(String(question));
    if (number < 0) throw new Error(`'${model}' cannot be asked '${question}': ask ${facts.queries.join(", ")}`);
    return viewOf(facts, number, network.ask(this.encoding(known, input), number));
  }

  /** The picture is encoded once and asked many times. */
  encoding(known, pixels) {
    const [height, width] = known.facts.size;
    if (pixels.length !== height * width * 3) {
      throw new Error(`expected ${height}×${width} pixels of 3 numbers, found ${pixels.length} numbers`);
    }
    if (!known.pixels || known.pixels.some((value, index) => value !== pixels[index])) {
      known.pixels = Float32Array.from(pixels); // a copy: the page goes on drawing in its own
      known.encoding = known.network.encode(new FeatureMap(height, width, 3, known.pixels));
    }
    return known.encoding;
  }
}

/** A network of layers that the engine has. */
function ofEngine(kind, layers) {
  const Model = MODELS[kind];
  if (!Model) throw new Error(`this page cannot compute a model of kind '${kind}'`);
  return new Model(layers);
}

/** A network that the model's family computes with a module of its own; see the Python module saccade.web.page. */
function ofFamily(weights) {
  const module = globalThis.saccadeModules?.[weights.runtime];
  if (!module) throw new Error(`this page does not carry ${weights.runtime}, which computes '${weights.model}'`);
  return module.network(weights, TOOLS);
}
