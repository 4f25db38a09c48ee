import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  endpointPortsInOrder,
  slicePortsInOrder,
  subsetsInOrder,
  fnv128a,
} from '../../../../src/controllers/service-endpoints/hash-order.ts';
import type { EndpointSubset } from '../../../../src/objects/types/core.generated.ts';
import { anyCharacter } from '../../../support/any-character.ts';

/** FNV-1a as its authors define it, in big numbers. */
function defined(text: string): string {
  let hash = 0x6c62272e07bb014262b821756295c58dn;
  for (const byte of new TextEncoder().encode(text)) {
    hash = BigInt.asUintN(128, (hash ^ BigInt(byte)) * 0x1000000000000000000013bn);
  }
  return hash.toString(16).padStart(32, '0');
}

describe('fnv128a', () => {
  it.each([
    // The vectors of Go's hash/fnv.
    ['', '6c62272e07bb014262b821756295c58d'],
    ['a', 'd228cb696f1a8caf78912b704e4a8964'],
    ['ab', '08809544bbab1be95aa0733055b69a62'],
    ['abc', 'a68d622cec8b5822836dbc7977af7f3b'],
  ])('hashes %j', (text, hash) => {
    expect(fnv128a(text)).toBe(hash);
  });

  it('is the hash that its definition gives, for any text', () => {
    const text = fc.string({ unit: anyCharacter, maxLength: 40 });
    fc.assert(
      fc.property(text, (any) => fnv128a(any) === defined(any)),
      { numRuns: 50 },
    );
  });
});

/** The texts that Go's spew prints, as k8s.io/utils/dump tests them: types, pointers followed, nil in brackets. */
const printed = {
  slicePort: (name: string, port: number, appProtocol = '<nil>') =>
    `(v1.EndpointPort){Name:(*string)${name} Protocol:(*v1.Protocol)TCP Port:(*int32)${port} AppProtocol:(*string)${appProtocol}}`,
  port: (name: string, port: number, appProtocol = '<nil>') =>
    `(v1.EndpointPort){Name:(string)${name} Port:(int32)${port} Protocol:(v1.Protocol)TCP AppProtocol:(*string)${appProtocol}}`,
};

function byDefinedHash<T>(items: readonly T[], print: (item: T) => string): T[] {
  return [...items].sort((a, b) => (defined(print(a)) < defined(print(b)) ? -1 : 1));
}

const numbers = [80, 81, 443, 8080, 9090, 9376, 53, 1337, 1338, 65535];

describe('the order of ports', () => {
  it('of EndpointSlices is that of their hashes', () => {
    const ports = numbers.map((port) => ({ name: `port-${port}`, protocol: 'TCP', port }));
    const wanted = byDefinedHash(ports, ({ name, port }) => printed.slicePort(name, port));
    expect(slicePortsInOrder(ports)).toEqual(wanted);
    expect(wanted).not.toEqual(ports);
  });

  it('of EndpointSlices counts the application protocol, and what an object of others lacks', () => {
    const ports = [
      { name: '', protocol: 'TCP', port: 80, appProtocol: 'h2c' },
      { name: 'x', protocol: 'TCP', port: 80 },
      {},
    ];
    const wanted = byDefinedHash(ports, ({ name, port, appProtocol }) =>
      port === undefined
        ? '(v1.EndpointPort){Name:(*string)<nil> Protocol:(*v1.Protocol)<nil> Port:(*int32)<nil> AppProtocol:(*string)<nil>}'
        : printed.slicePort(name, port, appProtocol),
    );
    expect(slicePortsInOrder(ports)).toEqual(wanted);
  });

  it('of Endpoints is that of their hashes, whether the name is absent or empty', () => {
    const ports = numbers.map((port) => ({ port, protocol: 'TCP', appProtocol: 'http' }));
    const wanted = byDefinedHash(ports, ({ port }) => printed.port('', port, 'http'));
    expect(endpointPortsInOrder(ports)).toEqual(wanted);
    const named = ports.map((port) => ({ ...port, name: '' }));
    expect(endpointPortsInOrder(named).map(({ port }) => port)).toEqual(wanted.map(({ port }) => port));
  });

  it('does not depend on the order before', () => {
    const anyPort = fc.record(
      {
        name: fc.constantFrom('a', 'b', ''),
        port: fc.integer({ min: 1, max: 5 }),
        protocol: fc.constantFrom('TCP', 'UDP', 'SCTP'),
        appProtocol: fc.constantFrom('http', 'kubernetes.io/h2c'),
      },
      { requiredKeys: ['name', 'port', 'protocol'] },
    );
    fc.assert(
      fc.property(fc.array(anyPort), fc.func(fc.nat()), (ports, rank) => {
        const shuffled = [...ports].sort((a, b) => rank(a) - rank(b));
        expect(slicePortsInOrder(shuffled)).toEqual(slicePortsInOrder(ports));
        expect(endpointPortsInOrder(shuffled)).toEqual(endpointPortsInOrder(ports));
      }),
    );
  });
});

describe('the order of subsets', () => {
  it('is that of the hashes of all that they hold', () => {
    const address = (ip: string, more = {}) => ({ ip, ...more });
    const target = { kind: 'Pod', namespace: 'ns', name: 'p', uid: 'u' };
    const subsets: [EndpointSubset, string][] = [
      [
        { addresses: [address('10.0.0.1')], ports: [{ port: 80, protocol: 'TCP' }] },
        '(v1.EndpointSubset){Addresses:([]v1.EndpointAddress)[{IP:(string)10.0.0.1 Hostname:(string) NodeName:(*string)<nil> TargetRef:(*v1.ObjectReference)<nil>}] NotReadyAddresses:([]v1.EndpointAddress)<nil> Ports:([]v1.EndpointPort)[{Name:(string) Port:(int32)80 Protocol:(v1.Protocol)TCP AppProtocol:(*string)<nil>}]}',
      ],
      [
        {
          notReadyAddresses: [
            address('10.0.0.1', { hostname: 'h', nodeName: 'n', targetRef: target }),
            address('10.0.0.2'),
          ],
          ports: [
            { name: 'a', port: 80, protocol: 'TCP' },
            { name: 'b', port: 81, protocol: 'UDP', appProtocol: 'http' },
          ],
        },
        '(v1.EndpointSubset){Addresses:([]v1.EndpointAddress)<nil> NotReadyAddresses:([]v1.EndpointAddress)[{IP:(string)10.0.0.1 Hostname:(string)h NodeName:(*string)n TargetRef:(*v1.ObjectReference){Kind:(string)Pod Namespace:(string)ns Name:(string)p UID:(types.UID)u APIVersion:(string) ResourceVersion:(string) FieldPath:(string)}} {IP:(string)10.0.0.2 Hostname:(string) NodeName:(*string)<nil> TargetRef:(*v1.ObjectReference)<nil>}] Ports:([]v1.EndpointPort)[{Name:(string)a Port:(int32)80 Protocol:(v1.Protocol)TCP AppProtocol:(*string)<nil>} {Name:(string)b Port:(int32)81 Protocol:(v1.Protocol)UDP AppProtocol:(*string)http}]}',
      ],
      [
        { addresses: [address('10.0.0.3', { nodeName: '' })] },
        '(v1.EndpointSubset){Addresses:([]v1.EndpointAddress)[{IP:(string)10.0.0.3 Hostname:(string) NodeName:(*string) TargetRef:(*v1.ObjectReference)<nil>}] NotReadyAddresses:([]v1.EndpointAddress)<nil> Ports:([]v1.EndpointPort)<nil>}',
      ],
    ];
    const wanted = byDefinedHash(subsets, ([, text]) => text).map(([subset]) => subset);
    expect(subsetsInOrder(subsets.map(([subset]) => subset))).toEqual(wanted);
    expect(subsetsInOrder(subsets.map(([subset]) => subset).reverse())).toEqual(wanted);
  });
});
