import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Service, ServiceSpec } from '../../../../src/objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../../src/objects/types/discovery.generated.ts';
import { keyOf } from '../../../../src/objects/meta.ts';
import { ask, type Objects, service, slice, zoneOf } from './fixtures.ts';

const namespaces = ['a', 'b'];
const names = ['web', 'db'];
const clusterIPs = ['10.96.0.1', '10.96.0.2', 'fd00:96::1'];
const podIPs = ['10.1.0.1', '10.1.0.2', '10.1.0.3'];
const ports = [
  { name: 'http', protocol: 'TCP', port: 80 },
  { name: 'http', protocol: 'UDP', port: 81 },
];
const namespace = fc.constantFrom(...namespaces);
const name = fc.constantFrom(...names);

const someService: fc.Arbitrary<Service> = fc
  .record({
    namespace,
    name,
    spec: fc.oneof<fc.Arbitrary<ServiceSpec>[]>(
      fc.record({
        clusterIPs: fc.subarray(clusterIPs, { maxLength: 2 }),
        ports: fc.subarray(ports, { minLength: 1 }),
      }),
      fc.record({ clusterIPs: fc.constant(['None']), ports: fc.constant(ports) }),
      fc.constant({ type: 'ExternalName', externalName: 'example.com' }),
    ),
  })
  .map((drawn) => service(drawn.namespace, drawn.name, drawn.spec));

const someSlice: fc.Arbitrary<EndpointSlice> = fc
  .record({
    namespace,
    name,
    number: fc.nat({ max: 1 }),
    ports: fc.subarray(ports),
    endpoints: fc.array(
      fc.record(
        {
          addresses: fc.constantFrom(...podIPs).map((address) => [address]),
          conditions: fc.record({ ready: fc.boolean() }, { requiredKeys: [] }),
          hostname: fc.constantFrom('x', 'y'),
        },
        { requiredKeys: ['addresses', 'conditions'] },
      ),
      { maxLength: 3 },
    ),
  })
  .map((drawn) => slice(drawn.namespace, drawn.name, drawn.endpoints, drawn.ports, { number: drawn.number }));

/** A change of one object; undefined: it is gone. */
type Change =
  | { readonly kind: 'service'; readonly object: Service; readonly isGone: boolean }
  | { readonly kind: 'slice'; readonly object: EndpointSlice; readonly isGone: boolean }
  | { readonly kind: 'namespace'; readonly object: string; readonly isGone: boolean };

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constant('service' as const), object: someService, isGone: fc.boolean() }),
  fc.record({ kind: fc.constant('slice' as const), object: someSlice, isGone: fc.boolean() }),
  fc.record({ kind: fc.constant('namespace' as const), object: namespace, isGone: fc.boolean() }),
);

/** Every name that the drawn objects can give, and some that none can. */
const questions = namespaces
  .flatMap((inside) => [
    `${inside}.svc`,
    ...names.flatMap((one) => [
      `${one}.${inside}.svc`,
      ...[
        '_http._tcp',
        '_http._udp',
        '_none._tcp',
        'x',
        'y',
        ...podIPs.map((ip) => ip.replaceAll('.', '-')),
      ].map((part) => `${part}.${one}.${inside}.svc`),
    ]),
  ])
  .map((relative) => `${relative}.cluster.local`)
  .concat(
    [...clusterIPs.slice(0, 2), ...podIPs].map((ip) => `${ip.split('.').reverse().join('.')}.in-addr.arpa`),
  );
const types = ['A', 'AAAA', 'SRV', 'CNAME', 'PTR', 'TXT'];

function replay(changes: readonly Change[]): Required<Pick<Objects, 'namespaces' | 'services' | 'slices'>> {
  const present = { service: new Map<string, Service>(), slice: new Map<string, EndpointSlice>() };
  const inside = new Set<string>();
  for (const each of changes) {
    if (each.kind === 'namespace') {
      if (each.isGone) inside.delete(each.object);
      else inside.add(each.object);
    } else if (each.isGone) present[each.kind].delete(keyOf(each.object));
    else if (each.kind === 'service') present.service.set(keyOf(each.object), each.object);
    else present.slice.set(keyOf(each.object), each.object);
  }
  return {
    namespaces: [...inside],
    services: [...present.service.values()],
    slices: [...present.slice.values()],
  };
}

/** Sorted: answers have no order, for they are shuffled. */
function answers(zone: ReturnType<typeof zoneOf>): Map<string, unknown> {
  const found = new Map<string, unknown>();
  for (const question of questions) {
    for (const type of types) {
      const told = ask(zone, question, type);
      found.set(`${question} ${type}`, typeof told === 'string' ? told : [...told].sort());
    }
  }
  return found;
}

test('a zone that was changed object by object answers as one that is made of what is left', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
      const zone = zoneOf({});
      for (const { kind, object, isGone } of changes) {
        if (kind === 'namespace') zone.setNamespace(object, !isGone);
        else if (kind === 'service') zone.setService(keyOf(object), isGone ? undefined : object);
        else zone.setSlice(keyOf(object), isGone ? undefined : object);
      }
      const whole = zoneOf(replay(changes));
      // A Service with two names of one cluster IP keeps the older one, so that their order counts there alone.
      expect(withoutReverse(answers(zone))).toEqual(withoutReverse(answers(whole)));
    }),
  );
});

function withoutReverse(found: Map<string, unknown>): unknown {
  return [...found].filter(([question]) => !question.includes('.arpa '));
}

/** The rules of the specification as plain loops over all objects. */
function expected(
  { namespaces: inside, services, slices }: ReturnType<typeof replay>,
  question: string,
  type: 'A' | 'AAAA',
): unknown {
  const labels = question.replace('.cluster.local', '').split('.').slice(0, -1);
  const [own = '', one = ''] = labels.reverse();
  if (!inside.includes(own)) return 'NXDOMAIN';
  if (labels.length === 1) return 'NODATA';
  const found = services.find(({ metadata }) => metadata.namespace === own && metadata.name === one);
  if (found === undefined) return 'NXDOMAIN';
  const { spec } = found;
  if (spec.type === 'ExternalName') return labels.length === 2 ? ['example.com'] : 'NXDOMAIN';
  if ((spec.clusterIPs ?? []).length === 0) return 'NXDOMAIN';
  const isEndpoint = labels.length === 3;
  const wanted = labels.length === 4 ? `${labels[3] ?? ''}/${labels[2] ?? ''}` : undefined;
  const has = (port: { name?: string; protocol?: string }): boolean =>
    wanted === undefined || `_${port.name ?? ''}/_${(port.protocol ?? '').toLowerCase()}` === wanted;
  let addresses: string[];
  if (spec.clusterIPs?.[0] === 'None' || isEndpoint) {
    addresses = slices
      .filter(
        ({ metadata }) =>
          metadata.namespace === own && metadata.labels?.['kubernetes.io/service-name'] === one,
      )
      .filter((each) => wanted === undefined || (each.ports ?? []).some(has))
      .flatMap((each) => each.endpoints ?? [])
      .filter(({ conditions }) => conditions?.ready !== false)
      .filter(
        (endpoint) =>
          !isEndpoint || (endpoint.hostname ?? endpoint.addresses[0]?.replaceAll('.', '-')) === labels[2],
      )
      .flatMap((endpoint) => endpoint.addresses);
  } else {
    addresses = (spec.ports ?? []).some(has) ? (spec.clusterIPs ?? []) : [];
  }
  if (addresses.length === 0) return 'NXDOMAIN';
  const ofType = [...new Set(addresses)].filter((address) => address.includes(':') === (type === 'AAAA'));
  return ofType.length === 0 ? 'NODATA' : ofType.sort();
}

test('addresses are those of the specification, for any objects and every name', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
      const objects = replay(changes);
      const zone = zoneOf(objects);
      for (const question of questions.filter((each) => each.endsWith('.cluster.local'))) {
        for (const type of ['A', 'AAAA'] as const) {
          const told = ask(zone, question, type);
          expect([question, type, typeof told === 'string' ? told : [...told].sort()]).toEqual([
            question,
            type,
            expected(objects, question, type),
          ]);
        }
      }
    }),
  );
});

test('every PTR leads back to its address', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
      const objects = replay(changes);
      const zone = zoneOf({ ...objects, namespaces });
      const known = new Set(objects.services.map(keyOf));
      for (const ip of podIPs) {
        const found = ask(zone, `${ip.split('.').reverse().join('.')}.in-addr.arpa`, 'PTR');
        if (typeof found === 'string') continue;
        for (const target of found) {
          const [, one = '', own = ''] = target.split('.');
          const owner = objects.services.find(
            ({ metadata }) => metadata.name === one && metadata.namespace === own,
          );
          // Slices of no Service, and of one without addresses of its own.
          if (!known.has(`${own}/${one}`) || owner?.spec.clusterIPs?.[0] === undefined) continue;
          expect(ask(zone, target, 'A')).toContain(ip);
        }
      }
    }),
  );
});
