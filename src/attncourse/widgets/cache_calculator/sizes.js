// What a cache of keys and values takes: numbers in, bytes out.

import { divisors } from "../shared/attention.js";

const GIBIBYTE = 2 ** 30;
const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
const USUAL_KV_HEADS = 8; // of models that share heads in groups

/** The widths of a latent vector and of its key with the position, by DeepSeek-V2's rule. */
export function usualLatent(d_k) {
  return [4 * d_k, Math.floor(d_k / 2)];
}

/** KV heads for h query heads that neither share all nor nothing: 8 or fewer, or null. */
function usualKvHeads(h) {
  const between = divisors(h).slice(1, -1);
  return between.findLast((heads) => heads <= USUAL_KV_HEADS) ?? between[0] ?? null;
}

/** What one way to share heads takes. */
function sizesOf(way, { layers, d_k, tokens, sequences, bytesPerNumber, memory }) {
  const { latent, kvHeads } = way;
  const perLayer = latent ? latent[0] + latent[1] : 2 * kvHeads * d_k;
  const perToken = layers * perLayer * bytesPerNumber;
  const perSequence = perToken * tokens;
  const fitting = Math.floor((memory * GIBIBYTE) / perSequence);
  return { ...way, perLayer, perToken, perSequence, inAll: perSequence * sequences, fitting };
}

/**
 * The ways in which this model's heads could share keys and values, {name, kvHeads or latent, isOwn,
 * perLayer, perToken, perSequence, inAll, fitting}: numbers, then bytes, then sequences in the memory.
 */
export function waysOf(state) {
  const { heads, latent, d_k } = state;
  const [h, own] = heads;
  const isGrouped = !latent && own > 1 && own < h;
  const grouped = isGrouped ? own : usualKvHeads(h);
  const ways = [{ name: "MHA", kvHeads: h, isOwn: !latent && own === h }];
  if (grouped !== null) ways.push({ name: "GQA", kvHeads: grouped, isOwn: isGrouped });
  if (h > 1) ways.push({ name: "MQA", kvHeads: 1, isOwn: !latent && own === 1 });
  ways.push({ name: "MLA", latent: latent ?? usualLatent(d_k), isOwn: latent !== null });
  return ways.map((way) => sizesOf(way, state));
}

/** Bytes with three digits that count: "1.25 GiB". */
export function byteText(bytes) {
  let [size, unit] = [bytes, 0];
  while (size >= 1023.5 && unit < UNITS.length - 1) [size, unit] = [size / 1024, unit + 1];
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return `${Number(size.toFixed(digits))} ${UNITS[unit]}`;
}
