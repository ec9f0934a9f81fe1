// Numbers in rows, and the one product of matrices that everything here is made of.
//
// Letters: B sentences in a batch, T tokens of one of them, d model width, h heads, d_k width of one
// head. x of "rows x d" is one typed array, row by row: x[row * d + c]. Weights are as torch keeps
// them, W of [out, in], so that a layer computes x W^T. Sums are doubles, as all numbers of
// JavaScript are: whether an array holds 32 or 64 bits decides only how results are stored.

/**
 * c = a b: `rows` x `steps` times `steps` x `columns`.
 *
 * An operand is {x, row, column}: a typed array, and how far apart its rows and its columns lie.
 * With them the same loop reads a matrix or its transpose (see below). It makes 2 x 4 sums at a
 * time, so that each number that it reads serves in several of them: else most of its time would go
 * into reading. At an edge it makes the last row or column more than once, and keeps one.
 */
export function multiply(a, b, c, rows, steps, columns) {
  const x = a.x;
  const y = b.x;
  const rightInA = a.column;
  const downInB = b.row;
  for (let i = 0; i < rows; i += 2) {
    const isPair = i + 1 < rows;
    for (let j = 0; j < columns; j += 4) {
      const last = columns - 1 - j;
      const at1 = Math.min(1, last) * b.column;
      const at2 = Math.min(2, last) * b.column;
      const at3 = Math.min(3, last) * b.column;
      let p = i * a.row;
      let q = isPair ? p + a.row : p;
      let r = j * b.column;
      let p0 = 0;
      let p1 = 0;
      let p2 = 0;
      let p3 = 0;
      let q0 = 0;
      let q1 = 0;
      let q2 = 0;
      let q3 = 0;
      for (let k = 0; k < steps; k++) {
        const xp = x[p];
        const xq = x[q];
        const y0 = y[r];
        const y1 = y[r + at1];
        const y2 = y[r + at2];
        const y3 = y[r + at3];
        p0 += xp * y0;
        p1 += xp * y1;
        p2 += xp * y2;
        p3 += xp * y3;
        q0 += xq * y0;
        q1 += xq * y1;
        q2 += xq * y2;
        q3 += xq * y3;
        p += rightInA;
        q += rightInA;
        r += downInB;
      }
      const at = i * columns + j;
      put(c, at, last, p0, p1, p2, p3);
      if (isPair) put(c, at + columns, last, q0, q1, q2, q3);
    }
  }
}

/** Put up to four sums side by side into c, from `at` to the `last` column at most. */
function put(c, at, last, s0, s1, s2, s3) {
  c[at] = s0;
  if (last > 0) c[at + 1] = s1;
  if (last > 1) c[at + 2] = s2;
  if (last > 2) c[at + 3] = s3;
}

/** An operand of `multiply`: x, whose rows are `columns` numbers long. */
export function matrix(x, columns) {
  return { x, row: columns, column: 1 };
}

/** The same numbers read as x^T. */
export function transposed(x, columns) {
  return { x, row: 1, column: columns };
}

/** a += b, for their first `count` numbers. */
export function addTo(a, b, count) {
  for (let i = 0; i < count; i++) a[i] += b[i];
  return a;
}
