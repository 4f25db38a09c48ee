import { describe, expect, test } from 'vitest';
import {
  addressOf,
  finalizer,
  isAssigned,
  objectNameOf,
  nextStep,
} from '../../../../../src/platforms/openshift/cloud-private-ip/plan.ts';
import { parseAddress } from '../../../../../src/objects/address.ts';
import type { CloudPrivateIPConfig } from '../../../../../src/objects/types/openshift.ts';

function config(
  node: string | undefined,
  has?: readonly [node: string, status: 'True' | 'False' | 'Unknown'],
  metadata: CloudPrivateIPConfig['metadata'] = {},
): CloudPrivateIPConfig {
  const [at = '', status = 'True'] = has ?? [];
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  const condition = { type: 'Assigned', status, reason: 'r', message: '', lastTransitionTime };
  return {
    ...{ apiVersion: 'cloud.network.openshift.io/v1', kind: 'CloudPrivateIPConfig' },
    metadata: { name: '192.0.2.1', ...metadata },
    spec: node === undefined ? {} : { node },
    ...(has === undefined ? {} : { status: { ...(at === '' ? {} : { node: at }), conditions: [condition] } }),
  };
}

const leaving = { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [finalizer] };

describe('the next step', () => {
  test.each<[string, CloudPrivateIPConfig, string]>([
    ['of a new object is to add', config('a'), 'add to a'],
    ['behind a failure is to add again', config('a', ['a', 'False']), 'add to a'],
    ['while the cloud has not answered is to add', config('a', ['a', 'Unknown']), 'add to a'],
    ['of an object that has its address is none', config('a', ['a', 'True']), 'none'],
    ['for another node is to release', config('b', ['a', 'True']), 'release from a'],
    [
      'for another node is to release whatever the condition says',
      config('b', ['a', 'False']),
      'release from a',
    ],
    ['for no node is to release', config(undefined, ['a', 'True']), 'release from a'],
    ['behind a release is to add', config('b', ['', 'True']), 'add to b'],
    [
      'of an object that is being deleted is to release',
      config('a', ['a', 'True'], leaving),
      'delete from a',
    ],
    ['of one without an address, too', config('a', undefined, leaving), 'delete from '],
    [
      'of one without our finalizer is none',
      config('a', ['a', 'True'], { ...leaving, finalizers: ['other'] }),
      'none',
    ],
  ])('%s', (_, object, wanted) => {
    const { kind, ...ends } = nextStep(object, false);
    const text = Object.entries(ends).map(([way, node]) => ` ${way} ${node}`);
    expect(`${kind}${text.join('')}`).toBe(wanted);
  });

  test('for another node is to move where the cloud can', () => {
    expect(nextStep(config('b', ['a', 'True']), true)).toEqual({ kind: 'move', from: 'a', to: 'b' });
  });
});

test.each([
  ['the same node, True', config('a', ['a', 'True']), true],
  ['the same node, False', config('a', ['a', 'False']), false],
  ['another node', config('b', ['a', 'True']), false],
  ['no node, True: it is released', config('a', ['', 'True']), false],
  ['no status', config('a'), false],
])('an object that has %s is trusted only with its own node and True', (_, object, trusted) => {
  expect(isAssigned(object)).toBe(trusted);
});

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['fc00.f853.0ccd.e793.0000.0000.0000.0054', 'fc00:f853:ccd:e793::54'],
  ['0000.0000.0000.0000.0000.0000.0000.0001', '::1'],
])('the name %s is the address %s, and back', (name, address) => {
  expect(addressOf(name)?.canonical).toBe(address);
  const parsed = parseAddress(address);
  expect(parsed && objectNameOf(parsed)).toBe(name);
});

test.each(['fc00.f853.0CCD.e793.0000.0000.0000.0054', 'fc00.f853.ccd.e793.0.0.0.54', '192.0.2', 'web'])(
  'the name %s is no address',
  (name) => {
    expect(addressOf(name)).toBeUndefined();
  },
);
