// View JSON made in the page, in the form in which the server sends it (saccade.web.views).
// Floats are base64 of their little-endian bytes, as typed arrays hold them on every machine that has a browser.

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

/** The floats of a base64 text. */
export function floatsFromBase64(text, dtype = "float32") {
  const { buffer } = bytesFromBase64(text);
  return dtype === "float16" ? Float32Array.from(new Uint16Array(buffer), numberFromHalf) : new Float32Array(buffer);
}

/** The inverse, for single precision. */
function base64FromFloats(floats) {
  const bytes = new Uint8Array(floats.buffer, floats.byteOffset, floats.byteLength);
  const parts = [];
  for (let start = 0; start < bytes.length; start += 8192) {
    parts.push(String.fromCharCode(...bytes.subarray(start, start + 8192)));
  }
  return btoa(parts.join(""));
}

/** The number that 16 bits of IEEE 754 mean: sign, 5 bits of exponent, 10 of fraction. */
export function numberFromHalf(bits) {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction);
}

export function bytesFromBase64(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}
