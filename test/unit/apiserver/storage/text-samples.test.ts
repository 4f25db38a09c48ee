import { expect, test } from 'vitest';
import { viewOf } from '../../../../src/apiserver/storage/text-differences.ts';
import { TextSamples } from '../../../../src/apiserver/storage/text-samples.ts';
import { heapUsed } from '../../../support/heap.ts';

function bytesInUse(): number {
  return heapUsed() + process.memoryUsage().arrayBuffers;
}

test('kinds that come and go leave nothing behind', () => {
  const samples = new TextSamples(32_768);
  const tell = (kind: string, text: string) => {
    const bytes = Buffer.from(text);
    return samples.tell(kind, bytes, viewOf(bytes), bytes.length);
  };
  const before = bytesInUse();
  for (let kind = 0; kind < 20_000; kind++) {
    for (let n = 0; n < 12; n++) tell(`example.com/kind-${kind}/`, 'x'.repeat(1000 + n));
  }
  expect(bytesInUse() - before).toBeLessThan(40 * 2 ** 20);
  expect(tell('example.com/kind-19999/', 'x'.repeat(1000))?.length).toBeLessThan(20);
});
