import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  type Dialect,
  encodeNotification,
  encodeOpen,
  encodeUpdates,
  endOfRib,
  keepalive,
  shutdownText,
} from '../../../../src/network/bgp/encode.ts';
import { MessageStream } from '../../../../src/network/bgp/decode.ts';
import {
  describeNotification,
  maxMessageLength,
  type BGPMessage,
  type Open,
  type Prefix,
  ProtocolError,
  type UpdateMessage,
} from '../../../../src/network/bgp/message.ts';
import {
  parseCommunity,
  parseLargeCommunity,
  prefixKey,
  type BGPRoute,
} from '../../../../src/network/bgp/route.ts';
import { runs } from '../../../support/runs.ts';

const families = ['IPv4', 'IPv6'] as const;
const prefix: fc.Arbitrary<Prefix> = fc.constantFrom(...families).chain((family) => {
  const bits = family === 'IPv4' ? 32 : 128;
  return fc
    .tuple(fc.bigInt({ min: 0n, max: 2n ** BigInt(bits) - 1n }), fc.nat({ max: bits }))
    .map(([value, length]) => ({
      ...{ family, length },
      network: (value >> BigInt(bits - length)) << BigInt(bits - length),
    }));
});
const uint32 = fc.nat({ max: 0xffff_ffff });
const route: fc.Arbitrary<BGPRoute> = fc
  .record({
    prefix,
    communities: fc.array(uint32, { maxLength: 3 }),
    largeCommunities: fc.array(fc.tuple(uint32, uint32, uint32), { maxLength: 2 }),
    localPref: uint32,
  })
  .map((parts) => ({ ...parts, nextHop: parts.prefix.family === 'IPv4' ? '192.0.2.1' : '2001:db8::1' }));
const open: fc.Arbitrary<Open> = fc.record({
  type: fc.constant('open'),
  as: fc.integer({ min: 1, max: 0xffff_ffff }),
  holdSeconds: fc.oneof(fc.constant(0), fc.integer({ min: 3, max: 0xffff })),
  routerId: fc.ipV4().filter((address) => address !== '0.0.0.0'),
  capabilities: fc.record({
    families: fc.constantFrom(['IPv4'] as const, ['IPv6'] as const, families),
    routeRefresh: fc.boolean(),
    // Without it, an AS of four bytes cannot be said.
    fourByteAs: fc.constant(true),
    gracefulRestart: fc.option(
      fc.record({
        restarting: fc.boolean(),
        restartSeconds: fc.nat({ max: 0xfff }),
        families: fc.constant([{ family: 'IPv6', forwarding: true } as const]),
      }),
      { nil: undefined },
    ),
  }),
});

/** What a peer reads from a stream, with the bytes cut at any place. */
function read(bytes: Uint8Array, fourByteAs = true, chunk = bytes.length): BGPMessage[] {
  const stream = new MessageStream();
  stream.fourByteAs = fourByteAs;
  const messages: BGPMessage[] = [];
  for (let at = 0; at < bytes.length; at += chunk) {
    messages.push(...stream.push(bytes.subarray(at, at + chunk)));
  }
  return messages;
}

describe('messages', () => {
  it('are read as they were written, however the connection cuts them', () => {
    fc.assert(
      fc.property(fc.array(open, { maxLength: 4 }), fc.integer({ min: 1, max: 70 }), (messages, chunk) => {
        const bytes = Buffer.concat([keepalive, ...messages.map(encodeOpen)]);
        expect(read(bytes, true, chunk)).toEqual([{ type: 'keepalive' }, ...messages]);
      }),
    );
  });

  it('are as RFC 4271 has them', () => {
    const bytes = encodeOpen({
      ...{ type: 'open', as: 64512, holdSeconds: 9, routerId: '192.0.2.1' },
      capabilities: { families: ['IPv4'], routeRefresh: true, fourByteAs: true, gracefulRestart: undefined },
    });
    expect(Buffer.from(bytes).toString('hex')).toBe(
      `${'ff'.repeat(16)}002d0104fc000009c00002011002 0e0104000100010200410400 00fc00`.replaceAll(' ', ''),
    );
    expect(Buffer.from(keepalive).toString('hex')).toBe(`${'ff'.repeat(16)}001304`);
    expect(Buffer.from(endOfRib('IPv4')).toString('hex')).toBe(`${'ff'.repeat(16)}00170200000000`);
    expect(read(endOfRib('IPv6'))).toMatchObject([{ endOfRib: 'IPv6', announced: [], withdrawn: [] }]);
  });

  it('of an AS of four bytes say AS_TRANS where there is room for two', () => {
    const bytes = encodeOpen({
      ...{ type: 'open', as: 4_200_000_000, holdSeconds: 90, routerId: '192.0.2.1' },
      capabilities: {
        families: undefined,
        routeRefresh: false,
        fourByteAs: true,
        gracefulRestart: undefined,
      },
    });
    expect((bytes[20] ?? 0) * 256 + (bytes[21] ?? 0)).toBe(23456);
    expect(read(bytes)).toMatchObject([{ as: 4_200_000_000 }]);
  });
});

describe('UPDATE messages', () => {
  const dialect: Dialect = { localAs: 4_200_000_000, isInternal: false, fourByteAs: true };
  const isUpdate = (message: BGPMessage): message is UpdateMessage => message.type === 'update';

  it('carry every route once, with its own attributes, in messages of 4,096 bytes at most', () => {
    fc.assert(
      fc.property(fc.array(route, { maxLength: 60 }), fc.array(prefix, { maxLength: 60 }), (routes, gone) => {
        const messages = encodeUpdates({ withdrawn: gone, announced: routes }, dialect);
        const updates = messages.flatMap((bytes) => read(bytes)).filter(isUpdate);
        expect(
          updates
            .flatMap(({ withdrawn }) => withdrawn)
            .map(prefixKey)
            .sort(),
        ).toEqual(gone.map(prefixKey).sort());
        const sent = updates.flatMap(({ announced, attributes }) =>
          announced.map((network) => ({ key: prefixKey(network), attributes })),
        );
        const expected = routes.map(({ prefix: network, nextHop, communities, largeCommunities }) => ({
          key: prefixKey(network),
          attributes: { origin: 'IGP', asPath: [4_200_000_000], nextHop, communities, largeCommunities },
        }));
        const sorted = (list: readonly object[]): string[] => list.map((item) => JSON.stringify(item)).sort();
        expect(sorted(sent.map(({ key, attributes }) => ({ key, ...attributes })))).toEqual(
          sorted(expected.map(({ key, attributes }) => ({ key, ...attributes }))),
        );
      }),
    );
  });

  it.each(families)('hold as many %s routes as fit', (family) => {
    const bits = family === 'IPv4' ? 32 : 128;
    const routes = Array.from({ length: 5000 }, (_, i): BGPRoute => ({
      prefix: { family, network: BigInt(i) + (1n << BigInt(bits - 2)), length: bits },
      ...{ nextHop: family === 'IPv4' ? '192.0.2.1' : '2001:db8::1', communities: [], largeCommunities: [] },
    }));
    const messages = encodeUpdates(
      { withdrawn: routes.map((each) => each.prefix), announced: routes },
      dialect,
    );
    const perRoute = 1 + bits / 8;
    for (const bytes of messages) expect(bytes.length).toBeLessThanOrEqual(maxMessageLength);
    // Of each kind only the last one has room for another route.
    const roomy = messages.filter((bytes) => bytes.length + perRoute <= maxMessageLength - 4);
    expect(roomy.length).toBeLessThanOrEqual(2);
    expect(messages.length).toBeLessThan(2 * ((5000 * perRoute) / 3900) + 2);
  });

  it('between speakers of one AS have an empty path and a preference', () => {
    const [bytes = new Uint8Array()] = encodeUpdates(
      { withdrawn: [], announced: [{ ...routeOf('10.0.0.1'), localPref: 200 }] },
      { ...dialect, isInternal: true },
    );
    expect(read(bytes)).toMatchObject([{ attributes: { asPath: [], localPref: 200 } }]);
  });

  it('to a speaker of 2-byte numbers have AS_TRANS, and the whole number beside it', () => {
    const [bytes = new Uint8Array()] = encodeUpdates(
      { withdrawn: [], announced: [routeOf('10.0.0.1')] },
      { ...dialect, fourByteAs: false },
    );
    expect(read(bytes, false)).toMatchObject([{ attributes: { asPath: [23456] } }]);
    // AS4_PATH: optional, transitive; a sequence of one.
    expect(Buffer.from(bytes).toString('hex')).toContain('c011060201fa56ea00');
  });

  it.each([
    ['without an origin', '4002004003040a000001'],
    ['with an origin that there is not', '4001010340020040030401020304'],
    ['with a path whose segment is too long', '4001010040020402020001400304c0000201'],
    ['with a next hop of three bytes', '400101004002004003030a0000'],
  ])('%s make their routes useless, and end nothing (RFC 7606)', (_, attributes) => {
    const bytes = update('', attributes, '180a0000');
    expect(read(bytes)).toMatchObject([{ announced: [{ length: 24 }], attributes: undefined }]);
  });
});

describe('what is no message', () => {
  const header = (length: number, type: number): Buffer =>
    Buffer.concat([Buffer.alloc(16, 0xff), Buffer.of(length >> 8, length & 255, type)]);
  const openBody = (body: string): Buffer => {
    const bytes = Buffer.from(body, 'hex');
    return Buffer.concat([header(19 + bytes.length, 1), bytes]);
  };

  test.each<[string, Uint8Array, number, number]>([
    ['a marker that is not all ones', Buffer.alloc(19, 0), 1, 1],
    ['a length below a header', header(18, 4), 1, 2],
    ['a length above 4,096', header(4097, 2), 1, 2],
    ['a KEEPALIVE with a body', header(20, 4), 1, 2],
    ['an OPEN of 28 bytes', header(28, 1), 1, 2],
    ['type 6', header(19, 6), 1, 3],
    ['version 3', openBody('03fc000009c000020100'), 2, 1],
    ['AS 0', openBody('0400000009c000020100'), 2, 2],
    ['BGP identifier 0.0.0.0', openBody('04fc0000090000000000'), 2, 3],
    ['an optional parameter for authentication', openBody('04fc000009c0000201020100'), 2, 4],
    ['a hold time of 2 s', openBody('04fc000002c000020100'), 2, 6],
    ['parameters longer than the message', openBody('04fc000009c000020105'), 2, 0],
    ['a capability longer than its parameter', openBody('04fc000009c000020104020201ff'), 2, 0],
    [
      'withdrawn routes longer than the message',
      Buffer.concat([header(23, 2), Buffer.from('00ff0000', 'hex')]),
      3,
      1,
    ],
    [
      'attributes longer than the message',
      Buffer.concat([header(23, 2), Buffer.from('000000ff', 'hex')]),
      3,
      1,
    ],
    ['an attribute longer than the attributes', update('', '400105', ''), 3, 1],
    ['a network of 33 bits', update('', '', '210a00000001'), 3, 10],
    ['MP_REACH_NLRI that ends in its next hop', update('', '800e05000201100a', ''), 3, 9],
    ['MP_REACH_NLRI twice', update('', '800e050002010000800e050002010000', ''), 3, 1],
    ['a ROUTE-REFRESH of 24 bytes', header(24, 5), 7, 1],
  ])('%s is answered with the right NOTIFICATION', (_, bytes, code, subcode) => {
    expect(notificationFor(bytes)).toMatchObject({ code, subcode });
  });

  it('never makes the decoder fail in another way, nor read on for ever', () => {
    const valid = fc
      .oneof(
        open.map(encodeOpen),
        fc.array(route, { minLength: 1, maxLength: 5 }).map((announced) => {
          const [bytes = keepalive] = encodeUpdates(
            { withdrawn: [], announced },
            { localAs: 1, isInternal: false, fourByteAs: true },
          );
          return bytes;
        }),
        fc.uint8Array({ maxLength: 80 }).map((data) => encodeNotification({ code: 6, subcode: 2, data })),
      )
      .map((bytes) => Buffer.from(bytes));
    const broken = fc
      .tuple(valid, fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { maxLength: 4 }))
      .map(([bytes, changes]) => {
        for (const [at, value] of changes) bytes[at % bytes.length] = value;
        return bytes;
      });
    fc.assert(
      fc.property(fc.oneof(broken, fc.uint8Array({ maxLength: 200 })), (bytes) => {
        const notification = notificationFor(bytes);
        if (notification !== undefined) expect([1, 2, 3, 7]).toContain(notification.code);
      }),
      { numRuns: runs(2000, 20_000) },
    );
  });
});

describe('a NOTIFICATION', () => {
  it('is described in the words of the registry, with the text of RFC 9003', () => {
    const cease = (subcode: number, data: Uint8Array): string =>
      describeNotification({ type: 'notification', code: 6, subcode, data });
    expect(cease(2, shutdownText('drain: node-1'))).toBe('Cease: Administrative Shutdown: drain: node-1');
    expect(cease(2, shutdownText('a\nb'))).toBe('Cease: Administrative Shutdown: a b');
    expect(cease(77, new Uint8Array())).toBe('Cease: subcode 77');
    expect(describeNotification({ type: 'notification', code: 99, subcode: 3, data: new Uint8Array() })).toBe(
      'code 99: subcode 3',
    );
  });

  it('has at most 255 bytes of text, cut between characters', () => {
    const data = shutdownText('é'.repeat(200));
    expect(data[0]).toBe(254);
    expect(data).toHaveLength(255);
    expect(new TextDecoder('utf-8', { fatal: true }).decode(data.subarray(1))).toBe('é'.repeat(127));
  });
});

describe('communities', () => {
  test.each<[string, number | undefined]>([
    ['64512:100', 64512 * 65536 + 100],
    ['no-export', 0xffff_ff01],
    ['65536:1', undefined],
    ['1:2:3', undefined],
    ['', undefined],
  ])('"%s" is %s', (text, value) => {
    expect(parseCommunity(text)).toBe(value);
  });

  test('large ones have three numbers of 32 bits', () => {
    expect(parseLargeCommunity('4294967295:0:7')).toEqual([4294967295, 0, 7]);
    expect(parseLargeCommunity('4294967296:0:7')).toBeUndefined();
    expect(parseLargeCommunity('1:2')).toBeUndefined();
  });
});

function routeOf(address: string): BGPRoute {
  const network = address.split('.').reduce((value, byte) => value * 256n + BigInt(byte), 0n);
  return {
    prefix: { family: 'IPv4', network, length: 32 },
    ...{ nextHop: '192.0.2.1', communities: [], largeCommunities: [] },
  };
}

/** An UPDATE of three parts in hexadecimal. */
function update(withdrawn: string, attributes: string, announced: string): Buffer {
  const parts = [withdrawn, attributes].map((text) => Buffer.from(text, 'hex'));
  const body = Buffer.concat([
    ...parts.flatMap((part) => [Buffer.of(part.length >> 8, part.length & 255), part]),
    Buffer.from(announced, 'hex'),
  ]);
  const length = 19 + body.length;
  return Buffer.concat([Buffer.alloc(16, 0xff), Buffer.of(length >> 8, length & 255, 2), body]);
}

function notificationFor(bytes: Uint8Array): { code: number; subcode: number } | undefined {
  try {
    read(bytes);
    return undefined;
  } catch (error) {
    if (error instanceof ProtocolError) return error.notification;
    throw error;
  }
}
