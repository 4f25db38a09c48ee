import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  readDifferences,
  Sample,
  viewOf,
  writeDifferences,
} from '../../../../src/apiserver/storage/text-differences.ts';

/** The differences of a text from another one; undefined when they take more than `most` bytes. */
function differences(sample: string, text: string, most: number): Buffer | undefined {
  const bytes = Buffer.from(text);
  const target = Buffer.alloc(most);
  const length = writeDifferences(
    new Sample(Buffer.from(sample)),
    bytes,
    viewOf(bytes),
    bytes.length,
    target,
    most,
  );
  return length === undefined ? undefined : target.subarray(0, length);
}

/** The text again: behind one byte, and from the middle of a buffer, as texts lie in blocks. */
function textOf(sample: string, told: Buffer): string {
  const source = Buffer.concat([Buffer.from('{{'), told, Buffer.from('}}')]);
  const target = Buffer.alloc(100_000, '.');
  const end = readDifferences(Buffer.from(sample), source, 2, 2 + told.length, target, 1);
  expect(target.toString('utf8', 0, 1) + target.toString('utf8', end, end + 1)).toBe('..');
  return target.toString('utf8', 1, end);
}

describe('the differences of a text from another', () => {
  /** Pieces that texts have in common, in an order of their own: what is copied comes from before and from behind. */
  const piece = fc.constantFrom(
    '"metadata":{"managedFields":[{"manager":"kubelet"',
    '"operation":"Update","apiVersion":"v1","time":"2026-11-22T13:00:00Z"',
    '"fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{}}}',
    'ä🙂語',
    '",":',
    'a'.repeat(200),
  );
  const text = fc
    .array(fc.oneof({ weight: 2, arbitrary: piece }, fc.string({ unit: 'binary', maxLength: 60 })), {
      maxLength: 40,
    })
    .map((parts) => parts.join('').toWellFormed());

  it('give the text again', () => {
    fc.assert(
      fc.property(text, text, (sample, other) => {
        const told = differences(sample, other, 100_000);
        expect(told === undefined ? undefined : textOf(sample, told)).toBe(other);
      }),
      { numRuns: 500 },
    );
  });

  it('take no more bytes than they may', () => {
    fc.assert(
      fc.property(text, text, fc.nat(2000), (sample, other, most) => {
        const told = differences(sample, other, most);
        if (told === undefined) return;
        expect(told.length).toBeLessThanOrEqual(most);
        expect(textOf(sample, told)).toBe(other);
      }),
    );
  });

  it('are a literal and a few copies where texts differ in a few places', () => {
    const podOf = (name: string, ip: string): string =>
      `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"${name}","namespace":"default"},"spec":{"containers":` +
      `[{"name":"web","image":"nginx","terminationMessagePath":"/dev/termination-log"}]},"status":{"podIP":"${ip}",` +
      `"podIPs":[{"ip":"${ip}"}],"qosClass":"BestEffort","startTime":"2026-11-22T13:00:00Z"}}`;
    const told = differences(podOf('web-1', '10.0.0.1'), podOf('web-9999', '10.1.2.3'), 1000);
    expect(told?.length).toBeLessThan(64);
  });

  it('copy from all of a large sample, forwards and backwards', () => {
    const sample = Array.from({ length: 6000 }, (_, i) => String(i).padStart(5, 'x')).join('');
    const end = sample.slice(-2000);
    const told = differences(sample, `${end}${sample.slice(0, 2000)}`, 4100);
    expect(told === undefined ? undefined : textOf(sample, told)).toBe(`${end}${sample.slice(0, 2000)}`);
    expect(told?.length).toBeLessThan(100);
  });
});
