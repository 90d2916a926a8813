// Pictures as the page holds them: {image, width, height, rgba, file}; made from pixels, files and data addresses.

const LONGEST = 1024; // a larger picture is shown, and sent, at this size
const KINDS = ["image/png", "image/jpeg", "image/webp", "image/bmp", "image/gif"];

/** A picture of RGBA bytes. */
export function pictureOfPixels(rgba, width, height) {
  const image = new OffscreenCanvas(width, height);
  image.getContext("2d").putImageData(new ImageData(rgba, width, height), 0, 0);
  return { image, width, height, rgba };
}

/** The picture in a file that was dropped, pasted or chosen. */
export async function pictureOfFile(file) {
  if (!KINDS.includes(file.type))
    throw new Error(
      `${file.name || "this file"} is ${file.type || "of no known kind"}; choose a PNG, JPEG, WebP, BMP or GIF`,
    );
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error(`${file.name || "this picture"} cannot be read: it is damaged or not what its name says`);
  }
  const scale = Math.min(1, LONGEST / Math.max(bitmap.width, bitmap.height));
  const [width, height] = [bitmap.width, bitmap.height].map((side) => Math.max(1, Math.round(side * scale)));
  return { ...drawn(bitmap, width, height), name: file.name || "pasted picture" };
}

/** The picture at a data: address of a view. */
export async function pictureOfView(view) {
  const { width, height, png } = view.picture;
  if (!png) return drawn(new OffscreenCanvas(width, height), width, height);
  if (!png.startsWith("data:image/")) throw new Error("a view carries its picture inside; this one points elsewhere");
  const image = new Image();
  image.src = png;
  await image.decode();
  return drawn(image, width, height);
}

/** The pixels (bytes 0 or 1) of a mask picture. */
export async function maskOfView(view, size) {
  if (!view.evidence?.mask_png) return null;
  const { rgba } = await pictureOfView({ picture: { ...size, png: view.evidence.mask_png } });
  const mask = new Uint8Array(size.width * size.height).map((_, at) => (rgba[4 * at] > 127 ? 1 : 0));
  return { width: size.width, height: size.height, mask };
}

/** A picture as a PNG data: address. */
export async function asPng(picture) {
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  canvas.getContext("2d").drawImage(picture.image, 0, 0, picture.width, picture.height);
  return asDataAddress(await canvas.convertToBlob({ type: "image/png" }));
}

/** A mask as a PNG data: address, white on black. */
export function maskAsPng({ width, height, mask }) {
  const rgba = new Uint8ClampedArray(4 * mask.length);
  mask.forEach((inside, at) => rgba.set(inside ? [255, 255, 255, 255] : [0, 0, 0, 255], 4 * at));
  return asPng(pictureOfPixels(rgba, width, height));
}

function drawn(source, width, height) {
  const image = new OffscreenCanvas(width, height);
  const context = image.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingQuality = "high";
  context.drawImage(source, 0, 0, width, height);
  return { image, width, height, rgba: context.getImageData(0, 0, width, height).data };
}

function asDataAddress(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}
