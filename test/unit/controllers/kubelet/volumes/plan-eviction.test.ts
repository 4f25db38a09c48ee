import { describe, expect, it } from 'vitest';
import {
  evictionMessage,
  limitsStorage,
  type LocalUsage,
} from '../../../../../src/controllers/kubelet/volumes/plan-eviction.ts';
import type { Container, PodSpec } from '../../../../../src/objects/types/core.generated.ts';

const container = (name: string, limit?: string): Container => ({
  name,
  ...(limit === undefined ? {} : { resources: { limits: { 'ephemeral-storage': limit } } }),
});
const mebibyte = 1024 * 1024;
const used = (containers: Record<string, number>, volumes: Record<string, number> = {}): LocalUsage => {
  const bytes = (of: Record<string, number>): Map<string, number> =>
    new Map(Object.entries(of).map(([name, amount]) => [name, amount * mebibyte]));
  return { containers: bytes(containers), volumes: bytes(volumes) };
};

describe('local storage of a Pod (kubelet eviction)', () => {
  it.each<[string, PodSpec, LocalUsage, string | undefined]>([
    ['without limits', { containers: [container('a')] }, used({ a: 900 }), undefined],
    ['at its limit', { containers: [container('a', '5Mi')] }, used({ a: 5 }), undefined],
    [
      'of one container over its limit',
      { containers: [container('a', '5Mi')] },
      used({ a: 6 }),
      'Pod ephemeral local storage usage exceeds the total limit of containers 5Mi. ',
    ],
    [
      'of a volume over its limit, before the Pod',
      { containers: [container('a', '1Mi')], volumes: [{ name: 'v', emptyDir: { sizeLimit: '2Mi' } }] },
      used({ a: 6 }, { v: 3 }),
      'Usage of EmptyDir volume "v" exceeds the limit "2Mi". ',
    ],
    [
      'that volumes take, too',
      { containers: [container('a', '5Mi')], volumes: [{ name: 'v', emptyDir: {} }] },
      used({ a: 3 }, { v: 3 }),
      'Pod ephemeral local storage usage exceeds the total limit of containers 5Mi. ',
    ],
    [
      'without what is in memory',
      { containers: [container('a', '5Mi')], volumes: [{ name: 'v', emptyDir: { medium: 'Memory' } }] },
      used({ a: 3 }, { v: 3 }),
      undefined,
    ],
    [
      'of a container over its own limit, below that of all',
      { containers: [container('a', '5Mi'), container('b', '10Mi')] },
      used({ a: 6 }),
      'Container a exceeded its local ephemeral storage limit "5Mi". ',
    ],
    [
      'over the sum of all',
      { containers: [container('a', '5Mi'), container('b', '10Mi'), container('c')] },
      used({ c: 16 }),
      'Pod ephemeral local storage usage exceeds the total limit of containers 15Mi. ',
    ],
    [
      'with a larger init container',
      { containers: [container('a')], initContainers: [container('i', '20Mi')] },
      used({ a: 19 }),
      undefined,
    ],
  ])('%s', (_, spec, usage, message) => {
    expect(evictionMessage(spec, usage)).toBe(message);
  });

  it('is looked at where something is limited', () => {
    expect(limitsStorage({ containers: [container('a')] })).toBe(false);
    expect(limitsStorage({ containers: [container('a', '1Gi')] })).toBe(true);
    expect(limitsStorage({ volumes: [{ name: 'v', emptyDir: { sizeLimit: '1Gi' } }] })).toBe(true);
  });
});
