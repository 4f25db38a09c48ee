import type { Bitmap } from './bitmap.ts';
import { DenseBitmap } from './dense-bitmap.ts';
import { SparseBitmap } from './sparse-bitmap.ts';

/** Up to here all words are there from the start: 2 MiB and a bit for 2^24 offsets (an IPv4 /8). */
const denseLimit = 2 ** 24;

/**
 * The bitmap that fits a range: dense for what fits in memory, else sparse.
 *
 * @param size 0 to 2^53.
 */
export function createBitmap(size: number): Bitmap {
  return size <= denseLimit ? new DenseBitmap(size) : new SparseBitmap(size, createBitmap);
}
