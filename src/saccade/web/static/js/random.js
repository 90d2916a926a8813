// Random numbers from a seed, the same in every browser.

/** A function that returns the next number in [0, 1): a 32-bit counter, stirred by multiply and shift (SplitMix). */
export function randomNumbers(seed) {
  let counter = seed >>> 0;
  return () => {
    counter = (counter + 0x9e3779b9) >>> 0;
    let bits = counter;
    bits = Math.imul(bits ^ (bits >>> 16), 0x21f0aaad);
    bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97);
    return ((bits ^ (bits >>> 15)) >>> 0) / 2 ** 32;
  };
}
