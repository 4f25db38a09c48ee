import { describe, expect, it } from 'vitest';
import { readCounters, readDenied } from '../../../../src/node/nftables/denied.ts';

/** As nft 1.0.6 lists a set. */
function listing(...elements: readonly object[]): string {
  const set = { family: 'inet', name: 'dropped-4', table: 'servicenet-policy', timeout: 300, elem: elements };
  return JSON.stringify({ nftables: [{ metainfo: { version: '1.0.6' } }, { set }] });
}

describe('denied packets', () => {
  it('are read with their number, and how long ago the last one came', () => {
    const element = (concat: readonly unknown[], expires: number) => ({
      elem: { val: { concat }, timeout: 300, expires, counter: { packets: 9, bytes: 540 } },
    });
    const text = listing(
      element(['10.0.0.1', '10.0.0.2', 'tcp', 8080, '10.96.0.7'], 298),
      element(['fd00:0::1', 'fd00::2', 17, 53, 'fd00::2'], 300),
      element(['10.0.0.1', '10.0.0.2', 'dccp', 1, '10.0.0.2'], 1),
    );
    const packets = { packets: 9 };
    expect(readDenied(text)).toEqual([
      {
        ...{ source: '10.0.0.1', destination: '10.0.0.2', protocol: 'TCP', port: 8080, sentTo: '10.96.0.7' },
        ...{ ...packets, agoSeconds: 2 },
      },
      {
        ...{ source: 'fd00::1', destination: 'fd00::2', protocol: 'UDP', port: 53, sentTo: 'fd00::2' },
        ...{ ...packets, agoSeconds: 0 },
      },
    ]);
    expect(readDenied(listing())).toEqual([]);
    expect(readDenied('{"nftables":[]}')).toEqual([]);
  });

  it('are counted beside their sets', () => {
    const counter = { family: 'ip', name: 'refused', table: 'servicenet', handle: 5, packets: 7, bytes: 494 };
    const text = JSON.stringify({ nftables: [{ metainfo: {} }, { counter }, { rule: {} }] });
    expect(readCounters(text)).toEqual(new Map([['ip servicenet refused', 7]]));
  });
});
