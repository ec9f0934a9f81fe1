// SHA-256 (FIPS 180-4). A browser's own is denied to pages that come over plain HTTP, as in a classroom.

const WORD = 2 ** 32;
const PRIMES = Array.from({ length: 310 }, (_, i) => i + 2).filter(isPrime); // the first 64
const BEGIN = PRIMES.slice(0, 8).map((prime) => firstBits(Math.sqrt(prime)));
const ROUNDS = Int32Array.from(PRIMES, (prime) => firstBits(Math.cbrt(prime)));

function isPrime(number) {
  for (let other = 2; other * other <= number; other++) if (number % other === 0) return false;
  return true;
}

/** The first 32 bits after a number's point. */
function firstBits(number) {
  return Math.floor((number % 1) * WORD) | 0;
}

function turned(word, bits) {
  return (word >>> bits) | (word << (32 - bits));
}

/** The SHA-256 of a buffer, in hexadecimal. */
export function sha256(buffer) {
  const size = buffer.byteLength;
  const bytes = new Uint8Array(64 * Math.ceil((size + 9) / 64));
  const view = new DataView(bytes.buffer);
  bytes.set(new Uint8Array(buffer));
  bytes[size] = 0x80;
  view.setUint32(bytes.length - 8, Math.floor((8 * size) / WORD));
  view.setUint32(bytes.length - 4, (8 * size) % WORD);
  const state = Int32Array.from(BEGIN);
  const w = new Int32Array(64);
  for (let block = 0; block < bytes.length; block += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getInt32(block + 4 * i);
    for (let i = 16; i < 64; i++) {
      const [near, far] = [w[i - 2], w[i - 15]];
      const s0 = turned(far, 7) ^ turned(far, 18) ^ (far >>> 3);
      const s1 = turned(near, 17) ^ turned(near, 19) ^ (near >>> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const s1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
      const s0 = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22);
      const first = h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[i] + w[i];
      const second = s0 + ((a & b) ^ (a & c) ^ (b & c));
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => {
      state[i] += word;
    });
  }
  return Array.from(state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}
