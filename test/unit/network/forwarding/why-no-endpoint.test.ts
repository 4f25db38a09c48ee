import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { podsThatExplain, whyNoEndpoint } from '../../../../src/network/forwarding/why-no-endpoint.ts';
import { keyOf } from '../../../../src/objects/meta.ts';
import type { Pod, Service, ServiceSpec } from '../../../../src/objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../../src/objects/types/discovery.generated.ts';

function service(spec: Partial<ServiceSpec> = {}): Service {
  return {
    metadata: { namespace: 'shop', name: 'web' },
    spec: {
      selector: { app: 'web', tier: 'front' },
      ipFamilies: ['IPv4'],
      ports: [{ name: 'http', port: 80, targetPort: 8080, nodePort: 30080 }],
      ...spec,
    },
    status: {},
  };
}

const web = { app: 'web', tier: 'front' };
interface Given {
  readonly labels?: Record<string, string>;
  readonly phase?: string;
  readonly isReady?: boolean;
  readonly isTerminating?: boolean;
  readonly message?: string;
  readonly waiting?: string;
}
function pod(name: string, given: Given = {}): Pod {
  const { labels = web, phase = 'Running', isReady = true, isTerminating = false, message, waiting } = given;
  const deleted = isTerminating ? { deletionTimestamp: '2026-11-28T00:00:00Z' } : {};
  const ready = {
    type: 'Ready',
    status: isReady ? 'True' : 'False',
    ...(message === undefined ? {} : { message }),
  };
  const scheduled = { type: 'PodScheduled', status: 'False', message: '0/3 nodes are available' };
  const container = { name: 'main', ready: isReady, restartCount: 0, image: '', imageID: '' };
  const states = waiting === undefined ? [] : [{ ...container, state: { waiting: { reason: waiting } } }];
  return {
    metadata: { namespace: 'shop', name, labels, ...deleted },
    spec: { containers: [{ name: 'main', ports: [{ name: 'web', containerPort: 8080 }] }] },
    status: {
      phase,
      podIPs: [{ ip: '10.1.1.2' }],
      conditions: phase === 'Pending' ? [scheduled] : [ready],
      containerStatuses: states,
    },
  };
}

function slice(isReady: boolean, name = 'http'): EndpointSlice {
  return {
    metadata: { namespace: 'shop', name: 'web-1' },
    addressType: 'IPv4',
    ports: [{ name, port: 8080 }],
    endpoints: [{ addresses: ['10.1.1.2'], conditions: { ready: isReady } }],
  };
}

describe('why a Service has no endpoint', () => {
  it.each<readonly [string, Partial<ServiceSpec>, readonly Pod[], string]>([
    ['NoSelector', { selector: {} }, [], 'there are no EndpointSlices'],
    [
      'SelectorMatchesNothing',
      {},
      [pod('a', { labels: { app: 'x' } })],
      'no Pod has the labels app=web,tier=front',
    ],
    [
      'SelectorMatchesNothing',
      {},
      [pod('a', { labels: { app: 'web', tier: 'frnt' } }), pod('b', { labels: { app: 'web' } })],
      'tier=front: Pod shop/a has tier=frnt, Pod shop/b lacks tier=front',
    ],
    ['SelectorMatchesNothing', { selector: { app: 'wbe' } }, [pod('a')], ': Pod shop/a has app=web'],
    ['PodsNotRunning', {}, [pod('a', { phase: 'Pending' })], 'a is Pending (0/3 nodes are available)'],
    ['PodsNotRunning', {}, [pod('a', { phase: 'Succeeded' })], 'a is Succeeded'],
    [
      'PodsNotReady',
      {},
      ['a', 'b', 'c', 'd'].map((name) => pod(name, { isReady: false, message: 'unready: [main]' })),
      'none of them is ready: a (unready: [main]), b (unready: [main]), c (unready: [main]) and 1 more',
    ],
    ['PodsNotReady', {}, [pod('a', { isReady: false, waiting: 'CrashLoopBackOff' })], 'a (CrashLoopBackOff)'],
    ['PodsTerminating', {}, [pod('a', { isTerminating: true })], 'being deleted: a'],
    [
      'PortNameNotFound',
      { ports: [{ name: 'http', port: 80, targetPort: 'www' }] },
      [pod('a')],
      'no container of theirs has a port named www/TCP',
    ],
    ['OtherFamily', { ipFamilies: ['IPv6'] }, [pod('a')], 'none of them has an address of IPv6'],
    ['NotInSlicesYet', {}, [pod('a')], 'its EndpointSlices do not have them yet'],
    [
      'NotInSlicesYet',
      { publishNotReadyAddresses: true },
      [pod('a', { isReady: false })],
      'do not have them',
    ],
  ])('%s %j', (reason, spec, pods, message) => {
    const why = whyNoEndpoint(service(spec), pods, []);
    expect(why?.reason).toBe(reason);
    expect(why?.message).toContain(message);
  });

  it('says what holds before the first thing that does not', () => {
    const why = whyNoEndpoint(service(), [pod('a', { isReady: false }), pod('b', { isReady: false })], []);
    expect(why?.checks.map(({ isMet, message }) => [isMet, message])).toEqual([
      [true, 'the selector app=web,tier=front matches 2 Pods'],
      [true, '2 of them run'],
      [false, 'none of them is ready: a, b'],
    ]);
  });

  it('is about the port that is asked for', () => {
    const ports = [
      { name: 'http', port: 80, targetPort: 8080, nodePort: 30080 },
      { name: 'admin', port: 81, targetPort: 'admin' },
    ];
    const pods = [pod('a')];
    expect(whyNoEndpoint(service({ ports }), pods, [slice(true)], 80)).toBeUndefined();
    expect(whyNoEndpoint(service({ ports }), pods, [slice(true)], 30080)).toBeUndefined();
    expect(whyNoEndpoint(service({ ports }), pods, [slice(true)])).toBeUndefined();
    expect(whyNoEndpoint(service({ ports }), pods, [slice(true)], 81)?.reason).toBe('PortNameNotFound');
  });

  it('knows slices that others write', () => {
    expect(whyNoEndpoint(service({ selector: {} }), [], [slice(true)])).toBeUndefined();
    expect(whyNoEndpoint(service({ selector: {} }), [], [slice(false)])?.message).toContain(
      'no ready endpoint',
    );
  });
});

describe('the Pods that explain it', () => {
  it('lead to the same answer as all Pods of the namespace', () => {
    const values = fc.constantFrom('a', 'b', 'c');
    const labels = fc.dictionary(fc.constantFrom('app', 'tier', 'part'), values, { maxKeys: 3 });
    const state = fc.constantFrom({}, { isReady: false }, { phase: 'Pending' }, { isTerminating: true });
    const pods = fc.array(fc.tuple(labels, state), { maxLength: 12 });
    fc.assert(
      fc.property(fc.array(labels, { minLength: 1, maxLength: 4 }), pods, (selectors, given) => {
        // In any order: names tell it.
        const all = given.map(([of, how], index) => pod(`web-${(index * 7) % 12}`, { labels: of, ...how }));
        const services = selectors.map((selector, index) => {
          const { metadata, ...rest } = service({ selector });
          return { ...rest, metadata: { ...metadata, name: `s${index}` } };
        });
        const explaining = podsThatExplain(services, all);
        const sorted = all.toSorted((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1));
        for (const each of services) {
          expect(whyNoEndpoint(each, explaining.get(keyOf(each)) ?? [], [])).toEqual(
            whyNoEndpoint(each, sorted, []),
          );
        }
      }),
    );
  });
});
