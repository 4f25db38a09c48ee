import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  readConntrackEvents,
  type TrackedConnection,
  type Tuple,
} from '../../../../src/network/flows/conntrack.ts';
import { parseAddress } from '../../../../src/objects/address.ts';

/** As `nla_put` of the kernel writes it. */
function attribute(type: number, contents: Buffer): Buffer {
  const header = Buffer.alloc(4);
  header.writeUInt16LE(4 + contents.length);
  header.writeUInt16LE(type, 2);
  return Buffer.concat([header, contents, Buffer.alloc(-contents.length & 3)]);
}

function nested(type: number, ...attributes: readonly Buffer[]): Buffer {
  return attribute(type | 0x8000, Buffer.concat(attributes));
}

function number(size: number, value: number): Buffer {
  const bytes = Buffer.alloc(size);
  bytes.writeUIntBE(value, 0, size);
  return bytes;
}

function addressBytes(text: string): Buffer {
  const value = parseAddress(text)?.value ?? 0n;
  return Buffer.from(value.toString(16).padStart(text.includes(':') ? 32 : 8, '0'), 'hex');
}

function tuple(type: number, of: Tuple, protocol: number): Buffer {
  const first = of.source.includes(':') ? 3 : 1;
  return nested(
    type,
    nested(1, attribute(first, addressBytes(of.source)), attribute(first + 1, addressBytes(of.destination))),
    nested(
      2,
      attribute(1, number(1, protocol)),
      attribute(2, number(2, of.sourcePort)),
      attribute(3, number(2, of.destinationPort)),
    ),
  );
}

/** As `ctnetlink_conntrack_event` (net/netfilter/nf_conntrack_netlink.c) builds it. */
function message({ event, protocol, original, reply, isReplied }: TrackedConnection): Buffer {
  const protocolNumber = { TCP: 6, UDP: 17, SCTP: 132 }[protocol];
  const attributes = Buffer.concat([
    tuple(1, original, protocolNumber),
    tuple(2, reply, protocolNumber),
    attribute(12, number(4, 4711)),
    attribute(3, number(4, 8 | (isReplied ? 2 : 0))),
    attribute(7, number(4, 120)),
  ]);
  const header = Buffer.alloc(20);
  header.writeUInt32LE(header.length + attributes.length);
  header.writeUInt16LE(event === 'destroy' ? 0x102 : 0x100, 4);
  header.writeUInt16LE(event === 'new' ? 0x600 : 0, 6);
  header.writeUInt8(original.source.includes(':') ? 10 : 2, 16);
  return Buffer.concat([header, attributes]);
}

const ports = fc.integer({ min: 0, max: 65_535 });
const tuples = (addresses: fc.Arbitrary<string>): fc.Arbitrary<Tuple> =>
  fc.record({ source: addresses, sourcePort: ports, destination: addresses, destinationPort: ports });
/** One of IPv4 in IPv6 is one of IPv4 for Kubernetes; the kernel has no such connections. */
const ipV6 = fc
  .ipV6()
  .map((text) => parseAddress(text)?.canonical ?? '')
  .filter((text) => text.includes(':'));
const connections = fc.constantFrom(fc.ipV4(), ipV6).chain((addresses) =>
  fc.record({
    event: fc.constantFrom('new' as const, 'update' as const, 'destroy' as const),
    protocol: fc.constantFrom('TCP' as const, 'UDP' as const, 'SCTP' as const),
    original: tuples(addresses),
    reply: tuples(addresses),
    isReplied: fc.boolean(),
    ageSeconds: fc.constant(0),
  }),
);

describe('events of connections', () => {
  it('are read as the kernel writes them, of both families', () => {
    fc.assert(
      fc.property(fc.array(connections, { maxLength: 3 }), (said) => {
        expect(readConntrackEvents(Buffer.concat(said.map(message)))).toEqual(said);
      }),
    );
  });

  it('are neither those of other protocols nor messages of another kind', () => {
    fc.assert(
      fc.property(connections, (said) => {
        const [icmp, answer] = [message(said), message(said)];
        // The header and the addresses of the first tuple end where its protocol begins.
        const numberAt = 20 + 4 + (said.original.source.includes(':') ? 44 : 20) + 4 + 4;
        icmp.writeUInt8(1, numberAt);
        answer.writeUInt16LE(2, 4);
        expect([...readConntrackEvents(icmp), ...readConntrackEvents(answer)]).toEqual([]);
      }),
    );
  });

  it('may be cut or any bytes', () => {
    const cut = fc
      .tuple(connections, fc.nat(400), fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 4 }))
      .map(([said, length, changes]) => {
        const bytes = message(said).subarray(0, length);
        for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value;
        return bytes;
      });
    const anything = fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes));
    fc.assert(
      fc.property(fc.oneof(cut, anything), (bytes) => {
        for (const { original } of readConntrackEvents(bytes)) expect(original.source).not.toBe('');
      }),
    );
  });
});
