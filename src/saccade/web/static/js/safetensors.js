// Reading a safetensors file: a length, a JSON header, and the numbers, all little-endian.

const LARGEST_HEADER = 2 ** 24;

const READERS = {
  BOOL: [1, (view, at) => view.getUint8(at)],
  U8: [1, (view, at) => view.getUint8(at)],
  I32: [4, (view, at) => view.getInt32(at, true)],
  I64: [8, (view, at) => Number(view.getBigInt64(at, true))],
  BF16: [2, (view, at) => bitsAsFloat(view.getUint16(at, true) << 16)],
  F32: [4, (view, at) => view.getFloat32(at, true)],
  F64: [8, (view, at) => view.getFloat64(at, true)],
};

/** The tensors of a file's bytes by name: {shape, values}; anything out of its bounds is an error. */
export function readTensors(buffer) {
  const view = new DataView(buffer);
  const length = buffer.byteLength >= 8 ? Number(view.getBigUint64(0, true)) : NaN;
  if (!(length <= Math.min(LARGEST_HEADER, buffer.byteLength - 8))) throw new Error("not a safetensors file");
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const tensors = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name !== "__metadata__")
      tensors[name] = { shape: entry.shape, values: valuesOf(view, 8 + length, name, entry) };
  }
  return tensors;
}

function valuesOf(view, start, name, { dtype, shape, data_offsets: [from, to] }) {
  if (!READERS[dtype]) throw new Error(`tensor '${name}' is of the type ${dtype}, which the page does not read`);
  const [bytes, read] = READERS[dtype];
  const count = shape.reduce((product, side) => product * side, 1);
  if (to - from !== count * bytes || from < 0 || start + to > view.byteLength) {
    throw new Error(`tensor '${name}' does not fit its file`);
  }
  return Float64Array.from({ length: count }, (_, number) => read(view, start + from + number * bytes));
}

function bitsAsFloat(bits) {
  const view = new DataView(new ArrayBuffer(4));
  view.setInt32(0, bits);
  return view.getFloat32(0);
}
