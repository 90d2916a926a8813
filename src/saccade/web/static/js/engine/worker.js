// Models by name, in a worker, so that the page never waits for a look: pixels, or what else a model reads, and a
// question in, view JSON out.

import { totalOf } from "../frames.js";
import { viewWith, written } from "../views.js";
import { FeatureMap, matrixFromStored, softmax } from "./layers.js";
import { HAttNetModel, SoftModel } from "./networks.js";

const MODELS = { soft: SoftModel, hattnet: HAttNetModel };
const TOOLS = { matrix: matrixFromStored, softmax }; // for networks that a family brings along
const ONCE = { steps: 1, active: [true], gain: null, choice: null, emits: null, box: null }; // what happens once
const loaded = new Map(); // name → {facts, network, pixels, encoding}

/** Take in what `Family.page_model` made; returns what the model can be asked and can answer. */
export function load(weights) {
  const { stages, attention, head, layers, ...facts } = weights;
  const network = facts.runtime ? ofFamily(weights) : new MODELS[facts.kind]({ stages, attention, head });
  loaded.set(facts.model, { facts, network, pixels: null, encoding: null });
  return facts;
}

/** Answer a question about `input`: RGB 0..1 of a picture, row by row, as many as the model's input has; or JSON. */
export function look(input, question, model) {
  const { facts, network } = loaded.get(model);
  if (facts.runtime) return viewOfSlots(facts, network.answer(input, question));
  const number = facts.queries.indexOf(question);
  return viewOf(facts, question, network.ask(encodingOf(loaded.get(model), input), number));
}

/** The picture is encoded once and asked many times. */
function encodingOf(known, pixels) {
  const [height, width] = known.facts.size;
  if (!known.pixels || known.pixels.some((value, index) => value !== pixels[index])) {
    known.pixels = Float32Array.from(pixels); // a copy: the page goes on drawing in its own
    known.encoding = known.network.encode(new FeatureMap(height, width, 3, known.pixels));
  }
  return known.encoding;
}

/** A network that the model's family computes with a module of its own; see the Python module saccade.web.page. */
function ofFamily(weights) {
  return globalThis.saccadeModules[weights.runtime].network(weights, TOOLS);
}

/** What a model (its facts) saw in one picture of the size of its input: `logits` and the `weights` of its looks. */
function viewOf(facts, question, { logits, weights }) {
  const [height, width] = facts.size;
  const looks = facts.looks.map((own, number) => ({ ...own, ...ONCE, weights: weights[number] }));
  const shares = softmax(logits.map((logit) => logit / (facts.temperature ?? 1)));
  const answers = Array.from(shares, (share, answer) => [facts.answers[answer], share]);
  return {
    ...answered(facts, question, answers.sort((first, second) => second[1] - first[1])),
    picture: { name: null, width, height, png: null },
    looks: looks.map(written),
    total: written(totalOf(looks, facts.total, { width, height })),
  };
}

/**
 * What a model said of something that is no picture: `answers` are [word, share], likeliest first, and `looks` are
 * {weights, slots}, in the order of the facts' looks.
 */
function viewOfSlots(facts, { question, answers, looks, notes }) {
  const whole = (own, number) => written({ ...facts.looks[number], ...ONCE, ...own, own_slots: 0 });
  return { ...answered(facts, question, answers), looks: looks.map(whole), notes };
}

/** A view of an answer, with nothing looked at. */
function answered({ model, family, temperature }, question, [[answer, confidence], ...alternatives]) {
  return viewWith({ model, family, question, answer, confidence, calibrated: Boolean(temperature), alternatives });
}

/** One message in, one message out, in order. */
self.onmessage = ({ data: { verb, given } }) => {
  try {
    self.postMessage({ result: { load, look }[verb](...given) });
  } catch (error) {
    self.postMessage({ error: error.message });
  }
};
