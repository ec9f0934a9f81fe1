// The error function, to a double's precision.

const STEP = 1 / 8; // from one place of the table to the next
const LAST = 6; // beyond it erf can't be told from 1
const TERMS = 15; // of a Taylor series: half a step away, what is left out is below 1e-20
const TABLE = makeTable();

/**
 * erf's Taylor series around 0, 1/8, 2/8, ... 6. Its derivative is g(x) = 2 / sqrt(pi) exp(-x^2), whose
 * own follow from g' = -2 x g (Abramowitz & Stegun 1964, 7.1.19). Each series begins with erf at its
 * place, which the one before leads to; `lost` keeps what rounding takes from these sums (Kahan 1965).
 */
function makeTable() {
  const table = [];
  let [sum, lost] = [0, 0];
  for (let place = 0; place <= LAST; place += STEP) {
    const series = new Float64Array(TERMS + 1);
    let [before, g] = [0, (2 / Math.sqrt(Math.PI)) * Math.exp(-place * place)];
    for (let n = 0; n < TERMS; n++) {
      series[n + 1] = g / (n + 1);
      [before, g] = [g, (-2 * (place * g + before)) / (n + 1)];
    }
    series[0] = sum;
    table.push(series);
    const step = STEP * sumOf(series, STEP) - lost;
    const next = sum + step;
    [sum, lost] = [next, next - sum - step];
  }
  return table;
}

/** The sum of a series at a distance, but for its first term and divided by the distance. */
function sumOf(series, distance) {
  let sum = 0;
  for (let n = TERMS; n > 0; n--) sum = sum * distance + series[n];
  return sum;
}

/** The error function: how much of a bell, exp(-x^2), lies between -x and x. */
export function erf(x) {
  const size = Math.abs(x);
  if (!(size <= LAST)) return Math.sign(x);
  const place = Math.round(size / STEP);
  const distance = size - place * STEP;
  const found = TABLE[place][0] + distance * sumOf(TABLE[place], distance);
  return x < 0 ? -found : found;
}
