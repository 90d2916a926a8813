// Maps laid over a picture: bilinear between cell centres, the edge cells extended to the border (saccade.geometry).

/** The map of `grid` [height, width] cells laid over a picture of `size` by its upright `frame`, cells → pixels. */
export function project(weights, grid, frame, size) {
  const rows = between(frame[1][1], frame[1][2], grid[0], size[0]);
  const columns = between(frame[0][0], frame[0][2], grid[1], size[1]);
  const laid = new Float32Array(size[0] * size[1]);
  for (let y = 0; y < size[0]; y++) {
    const above = rows.cell[y] * grid[1];
    const below = above + (rows.share[y] > 0 ? grid[1] : 0);
    for (let x = 0; x < size[1]; x++) {
      const left = columns.cell[x];
      const right = left + (columns.share[x] > 0 ? 1 : 0);
      const top = mix(weights[above + left], weights[above + right], columns.share[x]);
      const bottom = mix(weights[below + left], weights[below + right], columns.share[x]);
      laid[y * size[1] + x] = mix(top, bottom, rows.share[y]);
    }
  }
  return laid;
}

/** How the maps of all looks become one: their product, their mean, or the last of them. */
export function combine(maps, how) {
  if (how === "last") return maps[maps.length - 1];
  const total = maps[0].slice();
  for (const map of maps.slice(1)) {
    for (let pixel = 0; pixel < total.length; pixel++) {
      total[pixel] = how === "product" ? total[pixel] * map[pixel] : total[pixel] + map[pixel];
    }
  }
  return how === "mean" ? total.map((value) => value / maps.length) : total;
}

/** For every pixel along an axis: the cell whose centre lies before it, and the share of the next one. */
function between(scale, shift, cells, pixels) {
  const cell = new Int32Array(pixels);
  const share = new Float64Array(pixels);
  for (let pixel = 0; pixel < pixels; pixel++) {
    const at = Math.min(Math.max((pixel + 0.5 - shift) / scale - 0.5, 0), cells - 1);
    cell[pixel] = Math.floor(at);
    share[pixel] = at - cell[pixel];
  }
  return { cell, share };
}

function mix(first, second, share) {
  return first + (second - first) * share;
}
