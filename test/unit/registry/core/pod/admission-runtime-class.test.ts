import type { PodSpec } from '../../../../../src/objects/types/core.generated.ts';
import type { RuntimeClass } from '../../../../../src/objects/types/node.generated.ts';
import { describe, expect, test } from 'vitest';
import { admitRuntimeClass } from '../../../../../src/registry/core/pod/admission.ts';

const kata: RuntimeClass = {
  metadata: { name: 'kata' },
  handler: 'kata',
  overhead: { podFixed: { cpu: '250m' } },
  scheduling: {
    nodeSelector: { runtime: 'kata' },
    tolerations: [
      { key: 'kata', operator: 'Exists' },
      { key: 'kata', operator: 'Equal', value: 'a', effect: 'NoSchedule' },
    ],
  },
};

function admitted(spec: PodSpec): PodSpec {
  const cluster = {
    list: () => [kata],
    get: (_group: string, _plural: string, _namespace: string, name: string) =>
      name === 'kata' ? kata : undefined,
  };
  admitRuntimeClass({ metadata: { name: 'a' } }, spec, cluster);
  return spec;
}

describe('a Pod', () => {
  test('without a runtime class stays as it is', () => {
    expect(admitted({ containers: [] })).toEqual({ containers: [] });
  });

  test('may name no class that does not exist', () => {
    expect(() => admitted({ runtimeClassName: 'gvisor' })).toThrow(
      'pods "a" is forbidden: pod rejected: RuntimeClass "gvisor" not found',
    );
  });

  test('gets the overhead of its class, and where it may run', () => {
    const own = { key: 'own', operator: 'Exists' };
    const spec = admitted({ runtimeClassName: 'kata', nodeSelector: { disk: 'ssd' }, tolerations: [own] });
    expect(spec.overhead).toEqual({ cpu: '250m' });
    expect(spec.nodeSelector).toEqual({ disk: 'ssd', runtime: 'kata' });
    expect(spec.tolerations).toEqual([own, { key: 'kata', operator: 'Exists' }]);
  });

  test('may say the same overhead in other words, and no other', () => {
    expect(admitted({ runtimeClassName: 'kata', overhead: { cpu: '0.25' } }).overhead).toEqual({
      cpu: '250m',
    });
    expect(() => admitted({ runtimeClassName: 'kata', overhead: { cpu: '1' } })).toThrow(
      "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
    );
    expect(() => admitted({ overhead: { cpu: '1' } })).toThrow(
      'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
    );
  });

  test('may not ask for nodes that its class does not run on', () => {
    expect(() => admitted({ runtimeClassName: 'kata', nodeSelector: { runtime: 'runc' } })).toThrow(
      'conflict: runtimeClass.scheduling.nodeSelector[runtime] = kata; pod.spec.nodeSelector[runtime] = runc',
    );
  });
});
