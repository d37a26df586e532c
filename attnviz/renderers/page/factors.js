// Weights that are worked out when they are looked at: exp(scale · q · k + bias by distance − log-sum-exp), in double.
import { shortest } from "./cells.js";

export class Factors {
  // `numbers`: q, k and log-sum-exp of each query.
  constructor({ width, scale, window, bias, attendable, shares }, numbers, nRows, nColumns) {
    const [ofKeys, ofSums] = [nRows * width, (nRows + nColumns) * width];
    Object.assign(this, { width, scale, bias, attendable, shares, nRows, nColumns });
    this.query = numbers.subarray(0, ofKeys);
    this.key = numbers.subarray(ofKeys, ofSums);
    this.logSumExp = numbers.subarray(ofSums);
    [this.back, this.forward] = window.map((reach) => reach ?? Number.POSITIVE_INFINITY);
  }

  isAllowed(row, column) {
    const apart = column - row;
    return apart >= -this.back && apart <= this.forward && (this.attendable === null || this.attendable[column] === 1);
  }

  at(row, column) {
    if (!this.isAllowed(row, column)) return 0;
    const { query, key, width, bias } = this;
    let sum = 0;
    for (let d = 0; d < width; d++) sum += query[row * width + d] * key[column * width + d];
    const most = bias ? (bias.length - 1) / 2 : 0; // the farthest that the bias has stands for all beyond
    const added = bias ? bias[Math.min(most, Math.max(-most, column - row)) + most] : 0;
    return Math.exp(sum * this.scale + added - this.logSumExp[row]);
  }

  said(row, column, digits = null) {
    const weight = this.at(row, column);
    return digits ? String(Number(weight.toPrecision(digits))) : shortest(Math.fround(weight));
  }

  // The keys that a query gives most to, as the method of cells.
  strongestOf(query, _, number) {
    const weights = Float64Array.from({ length: this.nColumns }, (_, column) => this.at(query, column));
    const found = [];
    for (let best = 0; found.length < number; found.push([query, best])) {
      best = weights.reduce((most, weight, column) => (weight > weights[most] ? column : most), 0);
      if (weights[best] === 0) break;
      weights[best] = 0;
    }
    return found;
  }

  // The pair with the largest weight in a cell of `block` × `block` of them.
  strongestIn(row, column, block) {
    const [top, left] = [row * block, column * block];
    const [bottom, right] = [Math.min(top + block, this.nRows), Math.min(left + block, this.nColumns)];
    let best = { query: top, key: left, weight: 0 };
    for (let query = top; query < bottom; query++) {
      for (let key = left; key < right; key++) {
        const weight = this.at(query, key);
        if (weight > best.weight) best = { query, key, weight };
      }
    }
    return best;
  }
}
