import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Cache, type CacheHandler, type IndexFunction } from '../../../../src/client/informers/cache.ts';
import type { Informer } from '../../../../src/client/informers/informer.ts';
import {
  pods as podResource,
  type ResourceType,
  services as serviceResource,
} from '../../../../src/client/resources.ts';
import { SelectorIndex } from '../../../../src/controllers/service-endpoints/backing-pods.ts';
import { selectorOf } from '../../../../src/controllers/service-endpoints/service.ts';
import { trimPod } from '../../../../src/controllers/service-endpoints/backing-pods.ts';
import { keyOf, type KubeObject, isKubeObject } from '../../../../src/objects/meta.ts';
import { containsLabels } from '../../../../src/objects/selectors/labels.ts';
import type { Pod } from '../../../../src/objects/types/core.generated.ts';
import { pod, service } from './samples.ts';

/** An informer whose cache the test fills itself. */
class FilledInformer<T extends KubeObject> implements Informer<T> {
  readonly resource: ResourceType<T>;
  readonly cache = new Cache<T>();
  readonly hasSynced = true;
  readonly isListing = false;
  readonly lastEventAt = 0;
  readonly syncProblem = undefined;

  constructor(resource: ResourceType<T>) {
    this.resource = resource;
  }

  synced(): Promise<boolean> {
    return Promise.resolve(true);
  }

  addHandler(_handler: CacheHandler<T>): () => void {
    return () => undefined;
  }

  addIndex(name: string, indexFunction: IndexFunction<T>): void {
    this.cache.addIndex(name, indexFunction);
  }
}

function setup() {
  const services = new FilledInformer(serviceResource);
  const pods = new FilledInformer(podResource);
  return { services, pods, selectorIndex: new SelectorIndex(services, pods) };
}

const labelSets = fc.dictionary(
  fc.constantFrom('app', 'tier', '__proto__', 'x'),
  fc.constantFrom('a', 'bb', ''),
  {
    maxKeys: 3,
  },
);

describe('SelectorIndex', () => {
  it('finds what matching every Service against every Pod finds', () => {
    fc.assert(
      fc.property(
        fc.array(labelSets, { maxLength: 12 }),
        fc.array(labelSets, { maxLength: 12 }),
        (selectors, podLabels) => {
          const { services, pods, selectorIndex } = setup();
          const made = selectors.map((selector, i) =>
            service({ selector }, { name: `s${i}`, namespace: i % 2 === 0 ? 'ns' : 'other' }),
          );
          const all = podLabels.map((labels, i) => pod(`p${i}`, { labels }));
          for (const one of made) services.cache.set(one);
          for (const one of all) pods.cache.set(one);
          for (const one of made) {
            const selector = one.spec.selector ?? {};
            const expected = all.filter(
              (p) => one.metadata.namespace === 'ns' && containsLabels(p.metadata.labels, selector),
            );
            if (Object.keys(selector).length === 0) continue;
            const found = selectorIndex.podsOf(one, selector);
            expect(found.map(keyOf).sort()).toEqual(expected.map(keyOf).sort());
          }
          for (const one of all) {
            const expected = made.filter(
              ({ metadata, spec }) =>
                metadata.namespace === 'ns' &&
                Object.keys(spec.selector ?? {}).length > 0 &&
                containsLabels(one.metadata.labels, spec.selector ?? {}),
            );
            expect([...selectorIndex.servicesOf(one)].sort()).toEqual(expected.map(keyOf).sort());
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  const before = pod('p', { labels: { app: 'a' } });
  const relabelled = { ...before, metadata: { ...before.metadata, labels: { app: 'a', extra: 'x' } } };
  const changes: [string, Pod, string[]][] = [
    ['nothing', before, []],
    ['the phase', { ...before, status: { ...before.status, phase: 'Failed' } }, []],
    ['a label that one selector names', relabelled, ['ns/extra']],
    ['readiness', pod('p', { labels: { app: 'a' }, ready: false }), ['ns/app']],
    ['addresses', pod('p', { labels: { app: 'a' }, ips: ['10.9.9.9'] }), ['ns/app']],
    ['the node', pod('p', { labels: { app: 'a' }, node: 'n2' }), ['ns/app']],
    ['deletion', pod('p', { labels: { app: 'a' }, terminating: true }), ['ns/app']],
    ['identity', pod('p', { labels: { app: 'a' }, uid: 'new' }), ['ns/app']],
    ['label and readiness', pod('p', { labels: { extra: 'x' }, ready: false }), ['ns/app', 'ns/extra']],
  ];
  it.each(changes)('knows whom a change of %s concerns', (_name, after, expected) => {
    const { services, selectorIndex } = setup();
    services.cache.set(service({ selector: { app: 'a' } }, { name: 'app' }));
    services.cache.set(service({ selector: { extra: 'x' } }, { name: 'extra' }));
    services.cache.set(service({ selector: { app: 'a' }, type: 'ExternalName' }, { name: 'alias' }));
    expect([...selectorIndex.servicesOfChange(after, before)].sort()).toEqual(expected);
  });
});

describe('trimPod', () => {
  it('keeps what endpoints are made from', () => {
    const full = pod('p', {
      transition: '2026-01-01T00:00:00Z',
      spec: {
        hostname: 'h',
        subdomain: 's',
        containers: [
          {
            name: 'c',
            image: 'i',
            ports: [{ name: 'http', containerPort: 80, protocol: 'TCP' }, { containerPort: 81 }],
          },
          { name: 'plain', image: 'i' },
        ],
        initContainers: [{ name: 'once', ports: [{ name: 'x', containerPort: 1 }] }],
      },
    });
    const trimmed = trimPod(full);
    expect(trimmed.spec).toEqual({
      nodeName: 'n1',
      hostname: 'h',
      subdomain: 's',
      containers: [{ name: 'c', ports: [{ name: 'http', containerPort: 80, protocol: 'TCP' }] }],
    });
    expect(trimmed.status).toEqual(full.status);
    expect(trimmed.metadata).toEqual(full.metadata);
    expect(trimPod(trimmed)).toEqual(trimmed);
  });

  it('survives what no schema allows', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), fc.jsonValue(), (value, other) => {
        const parts = {
          containers: [value, { ports: other }],
          initContainers: other,
          podIPs: value,
          podIP: other,
        };
        const hostile: unknown = {
          metadata: { name: 'p', labels: value },
          spec: parts,
          status: { ...parts, conditions: value },
        };
        if (!isKubeObject(hostile) || !podResource.isObject(hostile))
          throw new Error('such a Pod would not reach the cache');
        const trimmed = trimPod(hostile);
        expect(trimmed.metadata.name).toBe('p');
        expect(typeof trimmed.status.podIP).toMatch(/string|undefined/);
      }),
      { numRuns: 200 },
    );
  });
});

describe('a Service that no schema allows', () => {
  it.each([null, 3, 'app', ['app'], { app: 3 }, { app: null }, {}])('selects nothing with %j', (selector) => {
    const broken = service();
    Reflect.set(broken.spec, 'selector', selector);
    const { services, selectorIndex } = setup();
    services.cache.set(broken);
    expect(selectorOf(broken)).toBeUndefined();
    expect([...selectorIndex.servicesOf(pod('p'))]).toEqual([]);
  });
});
