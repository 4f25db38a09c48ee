import { describe, expect, it } from 'vitest';
import { SharedParts } from '../../../../src/client/informers/shared-informer.ts';
import { deepFreeze } from '../../../../src/objects/json.ts';
import type { KubeObject } from '../../../../src/objects/meta.ts';

interface Made extends KubeObject {
  spec: { nodeName: string; containers: { name: string; args: string[] }[] };
}

/** As it comes from the server: nothing of it is shared. */
function pod(name: string, container: string): Made {
  return { metadata: { name }, spec: { nodeName: name, containers: [{ name: container, args: ['a'] }] } };
}

function kept(parts: SharedParts, object: Made): Made {
  parts.share(object);
  deepFreeze(object);
  return object;
}

describe('SharedParts', () => {
  it('gives equal parts of specs once, and changes no object', () => {
    const parts = new SharedParts();
    const [a, b, other] = [pod('a', 'web'), pod('b', 'web'), pod('c', 'db')].map((each) => kept(parts, each));
    expect(b).toEqual(pod('b', 'web'));
    expect(other).toEqual(pod('c', 'db'));
    expect(b?.spec.containers).toBe(a?.spec.containers);
    expect(other?.spec.containers).not.toBe(a?.spec.containers);
  });

  it('gives equal members of parts that differ once, as of Pods whose token volumes have names of their own', () => {
    const parts = new SharedParts();
    const [a, b] = ['x1', 'x2'].map((suffix) => {
      const projected = { sources: [{ serviceAccountToken: { path: 'token', expirationSeconds: 3607 } }] };
      const volumes = [{ name: `kube-api-access-${suffix}`, projected }];
      const object = { metadata: { name: suffix }, spec: { volumes } };
      const before = structuredClone(object);
      parts.share(object);
      deepFreeze(object);
      expect(object).toEqual(before);
      return object;
    });
    expect(b?.spec.volumes).not.toBe(a?.spec.volumes);
    expect(b?.spec.volumes[0]?.projected).toBe(a?.spec.volumes[0]?.projected);
  });

  it('gives equal conditions once, and leaves the rest of a status to its object', () => {
    const parts = new SharedParts();
    const [a, b] = [1, 2].map(() => {
      const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }];
      const created = { metadata: { name: 'a', creationTimestamp: '2026-01-01T00:00:00Z' }, spec: {} };
      const object = { ...created, status: { phase: 'Running', podIPs: [{ ip: '10.0.0.1' }], conditions } };
      const before = structuredClone(object);
      parts.share(object);
      expect(object).toEqual(before);
      return object;
    });
    expect(b?.status.conditions).toBe(a?.status.conditions);
    expect(b?.status.podIPs).not.toBe(a?.status.podIPs);
  });

  it('remembers what comes again, among any number of parts that do not', () => {
    const parts = new SharedParts();
    const first = kept(parts, pod('first', 'web'));
    for (let i = 0; i < 5000; i++) {
      kept(parts, pod('p', `only-${i}`));
      if (i % 500 === 0) expect(kept(parts, pod('p', 'web')).spec.containers).toBe(first.spec.containers);
    }
  });

  it('drops the least recently used parts', () => {
    const parts = new SharedParts();
    const first = kept(parts, pod('first', 'web'));
    for (let i = 0; i < 5000; i++) kept(parts, pod('p', `only-${i}`));
    const again = kept(parts, pod('p', 'web'));
    expect(again.spec.containers).not.toBe(first.spec.containers);
    expect(again.spec.containers).toEqual(first.spec.containers);
  });

  it('leaves objects alone that have no spec, or one that is frozen', () => {
    const parts = new SharedParts();
    const frozen = pod('a', 'web');
    deepFreeze(frozen);
    for (const object of [{ metadata: { name: 'a' } }, { metadata: {}, spec: null }, frozen]) {
      const before: unknown = structuredClone(object);
      parts.share(object);
      expect(object).toEqual(before);
    }
  });
});
