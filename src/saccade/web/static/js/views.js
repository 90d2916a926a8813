// View JSON made in the page, in the form in which the server sends it (saccade.web.views).

import { base64FromFloats } from "./floats.js";

export const VIEW = "saccade.view/1";

/** A view with those of `fields` that are known, and nothing in the others. */
export function viewWith(fields) {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return {
    schema: VIEW,
    family: "",
    picture: null,
    question: null,
    kind: "label",
    confidence: null,
    calibrated: false,
    // The page computes no features to compare.
    fit: { verdict: "not known", p: null, level: 0.01, sentence: "not known whether this is like what the model learned from" },
    alternatives: [],
    labels: null,
    words: null,
    looks: [],
    total: null,
    evidence: null,
    scores: null,
    notes: [],
    ...Object.fromEntries(known),
  };
}

/** A look (or the total) with its weights as text, as views have them. */
export function written(entry) {
  return entry?.weights ? { ...entry, weights: base64FromFloats(entry.weights), dtype: "float32" } : entry;
}
