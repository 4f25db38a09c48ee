import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WatchDecoder } from '../../../../src/client/informers/reflector.ts';

const decodeAll = (chunks: readonly Buffer[]): unknown[] => {
  const decoder = new WatchDecoder();
  return chunks.flatMap((chunk) => [...decoder.decode(chunk)]);
};

describe('WatchDecoder', () => {
  it('reads the same events however the bytes are cut', () => {
    const event = fc.record({ type: fc.constantFrom('ADDED', 'DELETED'), object: fc.jsonValue() });
    fc.assert(
      fc.property(fc.array(event), fc.array(fc.nat(2000)), (events, cuts) => {
        const text = events.map((one) => `${JSON.stringify(one)}\n`).join('\n');
        const bytes = Buffer.from(text);
        const places = [
          0,
          ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b),
          bytes.length,
        ];
        const chunks = places.slice(1).map((end, i) => bytes.subarray(places[i], end));
        const expected: unknown = JSON.parse(JSON.stringify(events));
        expect(decodeAll(chunks)).toEqual(expected);
      }),
    );
  });

  it('keeps back a line that is not whole', () => {
    expect(decodeAll([Buffer.from('{"type":"ADDED"}')])).toEqual([]);
  });

  it.each([['x\n'], ['7\n'], ['null\n'], ['{}\n'], ['{"type":7}\n'], [' \n']])('refuses %j', (text) => {
    expect(() => decodeAll([Buffer.from(text)])).toThrow();
  });

  it('refuses an event without an end', () => {
    const decoder = new WatchDecoder();
    const chunk = Buffer.alloc(16 * 1024 * 1024, 'x');
    expect(() => {
      for (let i = 0; i < 5; i++) expect([...decoder.decode(chunk)]).toEqual([]);
    }).toThrow('larger than 64 MiB');
  });
});
