import { describe, expect, it } from 'vitest';
import { SliceTracker } from '../../../src/runtime/own-writes.ts';
import type { EndpointSlice } from '../../../src/objects/types/discovery.generated.ts';

function slice(uid: string, generation: number): EndpointSlice {
  return { metadata: { name: uid, uid, generation }, addressType: 'IPv4', endpoints: null, ports: null };
}

describe('SliceTracker', () => {
  it('lags until the cache shows the generation that was written', () => {
    const tracker = new SliceTracker(() => 0);
    tracker.wrote('k', 'o', slice('a', 2));
    expect(tracker.lag('k', 'o', [slice('a', 1)])).toBeGreaterThan(0);
    expect(tracker.lag('k', 'o', [])).toBeGreaterThan(0);
    expect(tracker.lag('k', 'o', [slice('a', 2)])).toBe(0);
    expect(tracker.lag('k', 'o', [slice('a', 3)])).toBe(0);
    expect(tracker.lag('other', 'o', [])).toBe(0);
  });

  it('lags while the cache shows a slice that was deleted', () => {
    const tracker = new SliceTracker(() => 0);
    tracker.deleting('k', 'o', slice('a', 1));
    expect(tracker.lag('k', 'o', [slice('a', 1)])).toBeGreaterThan(0);
    expect(tracker.lag('k', 'o', [])).toBe(0);
  });

  it('tells changes from echoes, and wakes the one that waits', () => {
    const tracker = new SliceTracker(() => 0);
    expect(tracker.arrived('k', slice('a', 1))).toBe('change');
    tracker.wrote('k', 'o', slice('a', 2));
    expect(tracker.arrived('k', slice('a', 2))).toBe('echo');
    tracker.lag('k', 'o', [slice('a', 1)]);
    expect(tracker.arrived('k', slice('a', 2))).toBe('awaited');
    expect(tracker.arrived('k', slice('a', 2))).toBe('echo');
    expect(tracker.arrived('k', slice('a', 3))).toBe('change');
  });

  it('tells own deletions from those of others', () => {
    const tracker = new SliceTracker(() => 0);
    tracker.wrote('k', 'o', slice('a', 1));
    tracker.deleting('k', 'o', slice('b', 1));
    expect(tracker.gone('k', slice('b', 1))).toBe('echo');
    expect(tracker.gone('k', slice('a', 1))).toBe('change');
    expect(tracker.lag('k', 'o', [])).toBe(0);
  });

  it('expects nothing more of a slice that went, whatever is answered later', () => {
    const tracker = new SliceTracker(() => 0);
    tracker.deleting('k', 'o', slice('a', 1));
    tracker.gone('k', slice('a', 1));
    // The answer was lost, so the deletion counts as undone.
    tracker.wrote('k', 'o', slice('a', 1));
    expect(tracker.lag('k', 'o', [])).toBe(0);
    tracker.gone('k', slice('b', 1));
    tracker.wrote('k', 'o', slice('b', 2));
    expect(tracker.lag('k', 'o', [])).toBe(0);
  });

  it('gives up after a minute, and at once for another owner', () => {
    let now = 0;
    const tracker = new SliceTracker(() => now);
    tracker.wrote('k', 'o', slice('a', 1));
    expect(tracker.lag('k', 'o', [])).toBe(60_000);
    expect(tracker.lag('k', 'successor', [])).toBe(0);
    tracker.wrote('k', 'o', slice('a', 1));
    now = 60_000;
    expect(tracker.lag('k', 'o', [])).toBe(0);
  });
});
