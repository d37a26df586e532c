// The shape of an arc over a text, from word to word: screen.js draws those of a sentence, atlas-head.js that of a moment.

// Where words are within the part that they stand in.
export function spotsOf(part, words) {
  const box = part.getBoundingClientRect();
  return words.map((word) => {
    const { left, width, top, bottom } = word.getBoundingClientRect();
    return { x: left + width / 2 - box.left, y: top - box.top, bottom: bottom - box.top };
  });
}

// An arc above the line of both words; where they stand in two lines, to the edge of the one and from that of the other.
export function pathOf(spots, from, to, { at, width, isLeftwards }) {
  const heightOver = ({ y }, across) => {
    const above = Math.max(0, ...spots.map(({ bottom }) => bottom).filter((bottom) => bottom < y));
    return Math.max(6, Math.min(y - above - 6, 14 + 0.3 * across) - 4 * at);
  };
  if (Math.abs(from.bottom - to.bottom) < (from.bottom - from.y) / 2) {
    const higher = from.y < to.y ? from : to;
    const top = higher.y - (4 / 3) * heightOver(higher, Math.abs(from.x - to.x));
    return `M${from.x} ${from.y}C${from.x} ${top} ${to.x} ${top} ${to.x} ${to.y}`;
  }
  const leaves = to.y > from.y === isLeftwards ? 0 : width;
  const half = (spot, edge) => {
    const top = spot.y - heightOver(spot, width);
    return `M${spot.x} ${spot.y}C${spot.x} ${top} ${spot.x} ${top} ${edge} ${top}`;
  };
  return half(from, leaves) + half(to, width - leaves);
}
