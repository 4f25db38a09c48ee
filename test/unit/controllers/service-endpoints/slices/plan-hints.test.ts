import { describe, expect, it } from 'vitest';
import { zoneShares } from '../../../../../src/controllers/service-endpoints/slices/plan-hints.ts';
import { isNodeReady } from '../../../../../src/objects/pods.ts';
import { node } from '../samples.ts';

describe('zoneShares', () => {
  it.each([
    [
      ['4', '4'],
      [0.5, 0.5],
    ],
    [
      ['1', '3'],
      [0.25, 0.75],
    ],
    [
      ['500m', '1500m'],
      [0.25, 0.75],
    ],
    [
      ['1e3', '3e3'],
      [0.25, 0.75],
    ],
    [
      ['0.5', '1.5'],
      [0.25, 0.75],
    ],
    [
      ['1k', '3000'],
      [0.25, 0.75],
    ],
  ])('shares %j as %j', (cpus, expected) => {
    const shares = zoneShares(cpus.map((cpu, i) => node(`n${i}`, `z${i}`, cpu)));
    expect([...(shares ?? new Map<string, number>()).values()]).toEqual(expected);
  });

  it.each([
    ['one zone', [node('a', 'z1'), node('b', 'z1')]],
    ['a node without zone', [node('a', 'z1'), node('b', 'z2'), node('c', undefined)]],
    ['a node without CPU', [node('a', 'z1'), node('b', 'z2', '0')]],
    ['CPU that is no quantity', [node('a', 'z1'), node('b', 'z2', 'many')]],
    ['no nodes', []],
  ])('says nothing with %s', (_name, nodes) => {
    expect(zoneShares(nodes)).toBeUndefined();
  });

  it('leaves out nodes that are not ready, and control planes', () => {
    const control = node('c', 'z3');
    control.metadata.labels = { ...control.metadata.labels, 'node-role.kubernetes.io/control-plane': '' };
    const shares = zoneShares([node('a', 'z1'), node('b', 'z2'), node('d', 'z4', '4', false), control]);
    expect([...(shares?.keys() ?? [])]).toEqual(['z1', 'z2']);
  });
});

describe('isNodeReady', () => {
  it('survives conditions that no schema allows', () => {
    const broken = node('a', 'z1');
    for (const conditions of [null, 'True', 3, [null, 3], { type: 'Ready' }]) {
      Reflect.set(broken.status, 'conditions', conditions);
      expect(isNodeReady(broken)).toBe(false);
    }
  });
});
