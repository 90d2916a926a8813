// Floats as base64 of their little-endian bytes, as typed arrays hold them on every machine that has a browser.

/** The floats of a base64 text. */
export function floatsFromBase64(text, dtype = "float32") {
  const { buffer } = bytesFromBase64(text);
  return dtype === "float16" ? Float32Array.from(new Uint16Array(buffer), numberFromHalf) : new Float32Array(buffer);
}

/** The inverse, for single precision. */
export function base64FromFloats(floats) {
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
