import type { PodSpec } from '../../../../../src/objects/types/core.generated.ts';
import type { RuntimeClass } from '../../../../../src/objects/types/node.generated.ts';
import { describe, expect, test } from 'vitest';
import { applyRuntimeClass, validateOverhead } from '../../../../../src/registry/core/pod/admission.ts';

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

const cluster = {
  list: () => [kata],
  get: (_group: string, _plural: string, _namespace: string, name: string) =>
    name === 'kata' ? kata : undefined,
};

function admitted(spec: PodSpec): PodSpec {
  expect(applyRuntimeClass(spec, cluster)).toBeUndefined();
  expect(validateOverhead(spec, cluster)).toBeUndefined();
  return spec;
}

describe('a Pod', () => {
  test('without a runtime class stays as it is', () => {
    expect(admitted({ containers: [] })).toEqual({ containers: [] });
  });

  test('may name no class that does not exist', () => {
    const why = 'pod rejected: RuntimeClass "gvisor" not found';
    expect(applyRuntimeClass({ runtimeClassName: 'gvisor' }, cluster)).toBe(why);
    expect(validateOverhead({ runtimeClassName: 'gvisor' }, cluster)).toBe(why);
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
    const other = { runtimeClassName: 'kata', overhead: { cpu: '1' } };
    const why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
    expect(applyRuntimeClass(other, cluster)).toBe(why);
    expect(validateOverhead(other, cluster)).toBe(why);
    expect(validateOverhead({ overhead: { cpu: '1' } }, cluster)).toBe(
      'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
    );
  });

  test('may not ask for nodes that its class does not run on', () => {
    expect(applyRuntimeClass({ runtimeClassName: 'kata', nodeSelector: { runtime: 'runc' } }, cluster)).toBe(
      'conflict: runtimeClass.scheduling.nodeSelector[runtime] = kata; pod.spec.nodeSelector[runtime] = runc',
    );
  });
});
