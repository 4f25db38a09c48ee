/**
 * What an allocation costs, in ns, at 0, 50, 99 and 99.9% full: `node test/bench/allocation.ts`. One operation is a
 * pick and the release of another address, so that the fill stays what it is. Prints a table and writes
 * bench-results/allocation.json. Budget (DESIGN.md): at 99.9% full at most 1 µs in the mean and ten times an empty
 * range.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { AddressAllocator } from '../../src/allocation/address-allocator.ts';
import { parseServiceCidr } from '../../src/allocation/address-range.ts';

const ranges = ['10.1.0.0/24', '10.2.0.0/16', '10.16.0.0/12', 'fd00:10:96::/108'];
const fills = [0, 0.5, 0.99, 0.999];
const batchSize = 256;
const operationCount = 200_000;

interface Row {
  range: string;
  fill: number;
  allocateNs: number;
  releaseNs: number;
  explicitNs: number;
}

function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Takes all, then gives random ones back until the wanted part is left: holes are where chance puts them. */
function filled(
  range: string,
  fill: number,
  random: () => number,
): { allocator: AddressAllocator; free: number } {
  const cidr = parseServiceCidr(range);
  if (cidr === undefined) throw new Error(`bad range ${range}`);
  const allocator = new AddressAllocator(cidr);
  if (fill > 0) {
    const all: string[] = [];
    while (allocator.free > 0) all.push(allocator.allocateNext(random));
    const keep = Math.min(Math.floor(all.length * fill), all.length - 1);
    for (let i = 0; allocator.used > keep; i++) {
      const j = i + Math.floor(random() * (all.length - i));
      const chosen = all[j] ?? '';
      all[j] = all[i] ?? '';
      allocator.release(chosen);
    }
  }
  return { allocator, free: allocator.free };
}

function measure(range: string, fill: number): Row {
  const random = seeded(42);
  const { allocator, free } = filled(range, fill, random);
  const batch = Math.max(1, Math.min(batchSize, Math.floor(free / 2)));
  const taken: string[] = new Array<string>(batch).fill('');
  let allocate = 0n;
  let release = 0n;
  let explicit = 0n;
  let operations = 0;
  while (operations < operationCount * 2) {
    const t0 = process.hrtime.bigint();
    for (let i = 0; i < batch; i++) taken[i] = allocator.allocateNext(random);
    const t1 = process.hrtime.bigint();
    for (let i = 0; i < batch; i++) allocator.release(taken[i] ?? '');
    const t2 = process.hrtime.bigint();
    for (let i = 0; i < batch; i++) allocator.allocate(taken[i] ?? '');
    const t3 = process.hrtime.bigint();
    for (let i = 0; i < batch; i++) allocator.release(taken[i] ?? '');
    operations += batch;
    if (operations < operationCount) continue; // warm-up
    allocate += t1 - t0;
    release += t2 - t1;
    explicit += t3 - t2;
  }
  const per = (sum: bigint): number => Math.round(Number(sum) / operationCount);
  return { range, fill, allocateNs: per(allocate), releaseNs: per(release), explicitNs: per(explicit) };
}

const rows = ranges.flatMap((range) => fills.map((fill) => measure(range, fill)));
console.log('range               full    allocateNext   release   allocate(explicit)   [ns]');
for (const { range, fill, allocateNs, releaseNs, explicitNs } of rows) {
  const cells = [range.padEnd(18), `${fill * 100}%`.padStart(6), String(allocateNs).padStart(14)];
  console.log([...cells, String(releaseNs).padStart(9), String(explicitNs).padStart(20)].join('  '));
}
for (const range of ranges) {
  const of = (fill: number): number =>
    rows.find((row) => row.range === range && row.fill === fill)?.allocateNs ?? 0;
  const ratio = of(0.999) / Math.max(1, of(0));
  const verdict = of(0.999) <= 1000 && ratio <= 10 ? 'within budget' : 'OVER BUDGET';
  console.log(
    `${range}: ${of(0.999)} ns at 99.9% full, ${ratio.toFixed(1)} times an empty range: ${verdict}`,
  );
}
mkdirSync('bench-results', { recursive: true });
writeFileSync(
  'bench-results/allocation.json',
  JSON.stringify({ node: process.version, rows }, undefined, 2) + '\n',
);
