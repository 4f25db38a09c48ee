import { describe, expect, it } from 'vitest';
import { containerFieldPath, podResources } from '../../../src/objects/pods.ts';
import type { KubeObject } from '../../../src/objects/meta.ts';

const ask = (cpu: string, fields: object = {}): object => ({ resources: { requests: { cpu } }, ...fields });

/** Millicores that a Pod requests. */
function requested(spec: object): number {
  const pod: KubeObject & { spec: object } = { metadata: {}, spec };
  return Number(podResources(pod, 'requests').get('cpu') ?? 0n) / 1e6;
}

describe('podResources', () => {
  it.each<[string, object, number]>([
    ['adds its containers', { containers: [ask('1'), ask('500m'), {}] }, 1500],
    [
      'takes the largest init container',
      { containers: [ask('1')], initContainers: [ask('3'), ask('2')] },
      3000,
    ],
    [
      'adds sidecars',
      { containers: [ask('1')], initContainers: [ask('1', { restartPolicy: 'Always' })] },
      2000,
    ],
    [
      'counts the sidecars before an init container beside it',
      {
        containers: [ask('1')],
        initContainers: [
          ask('1', { restartPolicy: 'Always' }),
          ask('3'),
          ask('1', { restartPolicy: 'Always' }),
        ],
      },
      4000,
    ],
    [
      'lets the Pod as a whole decide',
      { containers: [ask('1')], resources: { requests: { cpu: '4' } } },
      4000,
    ],
    ['adds the overhead', { containers: [ask('1')], overhead: { cpu: '250m' } }, 1250],
    ['asks for nothing', { containers: [{}] }, 0],
  ])('%s', (_name, spec, expected) => {
    expect(requested(spec)).toBe(expected);
  });

  it('adds no overhead to what has no limit', () => {
    const spec = {
      containers: [{ resources: { limits: { cpu: '1' } } }],
      overhead: { cpu: '1', memory: '1' },
    };
    const pod: KubeObject & { spec: object } = { metadata: {}, spec };
    expect([...podResources(pod, 'limits').keys()]).toEqual(['cpu']);
  });
});

describe('containerFieldPath', () => {
  it.each([
    ['a', 'spec.containers{a}'],
    ['i', 'spec.initContainers{i}'],
    ['e', 'spec.ephemeralContainers{e}'],
  ])('of %s is %s', (name, path) => {
    const spec = {
      containers: [{ name: 'a' }],
      initContainers: [{ name: 'i' }],
      ephemeralContainers: [{ name: 'e' }],
    };
    expect(containerFieldPath({ metadata: {}, spec, status: {} }, name)).toBe(path);
  });
});
