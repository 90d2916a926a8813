// A sighting as view JSON, the form in which the page draws answers wherever they were computed.

import { totalOf } from "../totals.js";
import { viewWith, written } from "../views.js";
import { softmax } from "./layers.js";

/** What a model (its facts) saw in one picture of the size of its input: `logits` and the `weights` of its looks. */
export function viewOf(facts, question, { logits, weights }) {
  const [height, width] = facts.size;
  const looks = facts.looks.map((look, number) => ({ ...look, ...ONCE, weights: weights[number] }));
  return {
    ...said(facts, facts.queries[question], ranked(facts, softmax(logits.map((logit) => logit / (facts.temperature ?? 1))))),
    picture: { name: null, width, height, png: null },
    looks: looks.map(written),
    total: written(totalOf(looks, facts.total, { width, height })),
  };
}

/**
 * What a model said of something that is no picture: `answers` are [word, share], likeliest first, and `looks` are
 * {weights, slots}, in the order of the facts' looks.
 */
export function viewOfSlots(facts, { question, answers, looks, notes }) {
  const look = (own, number) => written({ ...facts.looks[number], ...ONCE, ...own, own_slots: 0 });
  return { ...said(facts, question, answers), looks: looks.map(look), notes };
}

/** Every answer with its share, likeliest first. */
function ranked(facts, shares) {
  const named = Array.from(shares, (share, answer) => [facts.answers[answer], share]);
  return named.sort((first, second) => second[1] - first[1]);
}

/** A view of an answer, with nothing looked at. */
function said({ model, family, temperature }, question, [[answer, confidence], ...alternatives]) {
  return viewWith({ model, family, question, answer, confidence, calibrated: Boolean(temperature), alternatives });
}

/** What a look has that happens once and weighs every cell. */
const ONCE = { steps: 1, active: [true], gain: null, choice: null, emits: null, box: null };
