import { type Answer, decode, encode } from 'dns-packet';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MessageWriter, type DnsQuery, readQuery, type RefusedQuery } from '../../../src/dns/message.ts';
import type { AddressRecord, DnsRecord } from '../../../src/network/dns/records.ts';

function queryOf(name: string, type: 'A' | 'SRV' = 'A', udpPayloadSize?: number): Buffer {
  const opt = {
    type: 'OPT',
    name: '.',
    udpPayloadSize: udpPayloadSize ?? 0,
    extendedRcode: 0,
    ednsVersion: 0,
  } as const;
  return encode({
    type: 'query',
    id: 4711,
    flags: 0x0100,
    questions: [{ name, type }],
    additionals: udpPayloadSize === undefined ? [] : [{ ...opt, flags: 0, flag_do: false, options: [] }],
  });
}

function readable(bytes: Buffer): DnsQuery {
  const query = readQuery(bytes);
  if (query === undefined || 'refused' in query) throw new Error('this is no query');
  return query;
}

function refusalOf(bytes: Buffer): RefusedQuery['refused'] | 'ignored' | 'read' {
  const query = readQuery(bytes);
  if (query === undefined) return 'ignored';
  return 'refused' in query ? query.refused : 'read';
}

/** A header with one question, and these bytes behind it. */
function packet(...bytes: number[]): Buffer {
  return Buffer.from([0x12, 0x34, 0x01, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...bytes]);
}

const inA = [0, 1, 0, 1];

describe('what is no proper query', () => {
  const changed = (offset: number, value: number): Buffer => {
    const bytes = queryOf('web.shop.svc.cluster.local');
    bytes[offset] = value;
    return bytes;
  };
  test.each([
    ['nothing', Buffer.alloc(0), 'ignored'],
    ['less than a header', Buffer.alloc(11), 'ignored'],
    ['an answer', changed(2, 0x81), 'ignored'],
    ['a status request', changed(2, 0x10), 'NOTIMP'],
    ['an update', changed(2, 0x27), 'NOTIMP'],
    ['no question', changed(5, 0), 'FORMERR'],
    ['two questions', changed(5, 2), 'FORMERR'],
    ['65,535 additional records that are not there', changed(10, 255), 'FORMERR'],
    ['two answers', changed(7, 2), 'FORMERR'],
    ['two authorities', changed(9, 2), 'FORMERR'],
    ['a header alone', packet(), 'FORMERR'],
    ['a name that is cut off', packet(3, 0x77), 'FORMERR'],
    ['a name without a type', packet(3, 0x77, 0x77, 0x77, 0), 'FORMERR'],
    ['a name that points to itself', packet(0xc0, 12, ...inA), 'FORMERR'],
    ['a name that points to the header', packet(0xc0, 0, ...inA), 'FORMERR'],
    ['names that point to each other', packet(1, 0x61, 0xc0, 16, 1, 0x62, 0xc0, 12, ...inA), 'FORMERR'],
    ['a label of 64 bytes', packet(64, ...Array<number>(64).fill(0x61), 0, ...inA), 'FORMERR'],
    [
      'a name of 300 bytes',
      packet(
        ...Array<number[]>(30)
          .fill([9, ...Array<number>(9).fill(0x61)])
          .flat(),
        0,
        ...inA,
      ),
      'FORMERR',
    ],
    ['a name of 255 bytes', packet(...Array<number[]>(127).fill([1, 0x61]).flat(), 0, ...inA), 'read'],
    [
      'two OPT records',
      Buffer.concat([
        changed(11, 2),
        ...Array<Buffer>(2).fill(Buffer.from([0, 0, 41, 4, 0, 0, 0, 0, 0, 0, 0])),
      ]),
      'FORMERR',
    ],
  ])('%s', (_name, bytes, expected) => {
    expect(refusalOf(bytes)).toBe(expected);
  });

  test('random bytes never throw', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => void readQuery(Buffer.from(bytes))));
    const valid = queryOf('web.shop.svc.cluster.local', 'A', 1232);
    fc.assert(
      fc.property(
        fc.nat({ max: valid.length - 1 }),
        fc.nat({ max: 255 }),
        fc.nat({ max: valid.length }),
        (at, value, end) => {
          const bytes = Buffer.from(valid);
          bytes[at] = value;
          readQuery(bytes.subarray(0, end));
        },
      ),
    );
  });
});

describe('what a query says', () => {
  test('the name keeps its case', () => {
    expect(readable(queryOf('WeB.sHoP.svc')).name).toBe('WeB.sHoP.svc');
  });
  test.each([
    ['no EDNS', undefined, 512],
    ['less than anyone may take', 100, 512],
    ['some', 900, 900],
    ['more than fits every path', 4096, 1232],
  ])('its size by UDP: %s', (_name, asked, expected) => {
    expect(readable(queryOf('a', 'A', asked)).udpSize).toBe(expected);
  });
  test.each([
    ['a dot in a label', packet(3, 0x61, 0x2e, 0x62, 0, ...inA), false],
    ['a byte beyond ASCII', packet(1, 0xff, 0, ...inA), false],
    ['an underscore', packet(1, 0x5f, 0, ...inA), true],
  ])('%s', (_name, bytes, isPlain) => {
    expect(readable(bytes).isPlain).toBe(isPlain);
  });
});

const label = fc.stringMatching(/^[a-z0-9]{1,20}$/);
const name = fc
  .array(label, { minLength: 1, maxLength: 4 })
  .map((labels) => [...labels, 'cluster.local'].join('.'));
const octets = fc.array(fc.nat({ max: 255 }), { minLength: 4, maxLength: 4 });
const uint16 = fc.nat({ max: 65_535 });
const common = { name, ttl: fc.nat({ max: 86_400 }) };
const record: fc.Arbitrary<DnsRecord> = fc.oneof(
  fc.record({ ...common, type: fc.constant('A' as const), address: octets.map((bytes) => bytes.join('.')) }),
  fc.record({
    ...common,
    type: fc.constant('AAAA' as const),
    address: uint16.map((end) => `fd00:96::${(end + 1).toString(16)}`),
  }),
  fc.record({
    ...common,
    type: fc.constantFrom('CNAME' as const, 'PTR' as const, 'NS' as const),
    target: name,
  }),
  fc.record({
    ...common,
    type: fc.constant('SRV' as const),
    priority: uint16,
    weight: uint16,
    port: uint16,
    target: name,
  }),
  fc.record({ ...common, type: fc.constant('TXT' as const), text: label }),
  fc.record({
    ...common,
    type: fc.constant('SOA' as const),
    ...{
      mname: name,
      rname: name,
      serial: uint16,
      refresh: uint16,
      retry: uint16,
      expire: uint16,
      minimum: uint16,
    },
  }),
);

/** A record as dns-packet, which others wrote, reads it. */
function decodedForm(each: DnsRecord): unknown {
  const { name: owner, type, ttl, ...data } = each;
  const shared = { name: owner, type, ttl, class: 'IN', flush: false };
  if ('address' in data) return { ...shared, data: data.address };
  if (type === 'SRV' || type === 'SOA') return { ...shared, data };
  if ('target' in data) return { ...shared, data: data.target };
  return { ...shared, data: [Buffer.from(each.type === 'TXT' ? each.text : '')] };
}

const writer = new MessageWriter();
const nothing = { answers: [], authorities: [], additionals: [] };

describe('replies', () => {
  test('dns-packet reads what was written, with compressed names too', () => {
    const list = fc.array(record, { maxLength: 8 });
    fc.assert(
      fc.property(name, list, list, list, (asked, answers, authorities, additionals) => {
        const query = readable(queryOf(asked));
        const bytes = writer.write(
          { query, rcode: 'NOERROR', authoritative: true, answers, authorities, additionals },
          65_535,
        );
        const read = decode(bytes);
        expect(read).toMatchObject({
          id: 4711,
          flag_qr: true,
          flag_aa: true,
          flag_tc: false,
          flag_rd: true,
          flag_ra: true,
        });
        expect(read.questions).toMatchObject([{ name: asked, type: 'A', class: 'IN' }]);
        expect([read.answers, read.authorities, read.additionals]).toEqual(
          [answers, authorities, additionals].map((each) => each.map(decodedForm)),
        );
      }),
    );
  });

  test('a reply of any size keeps within the limit, and says when answers are missing', () => {
    fc.assert(
      fc.property(
        name,
        fc.array(record, { maxLength: 40 }),
        fc.integer({ min: 512, max: 1232 }),
        fc.boolean(),
        (asked, records, limit, isExtra) => {
          const query = readable(queryOf(asked, 'A', limit));
          const reply = { query, rcode: 'NOERROR', authoritative: true, ...nothing } as const;
          const bytes = writer.write(
            { ...reply, [isExtra ? 'additionals' : 'answers']: records },
            query.udpSize,
          );
          expect(bytes.length).toBeLessThanOrEqual(limit);
          const read = decode(bytes);
          const kept = (isExtra ? read.additionals : read.answers)?.filter(
            (each: Answer) => each.type !== 'OPT',
          );
          expect(kept).toEqual(records.slice(0, kept?.length ?? 0).map(decodedForm));
          // RFC 2181, 9: additional records alone are not worth another query.
          expect(read.flag_tc).toBe(!isExtra && (kept?.length ?? 0) < records.length);
          expect(read.additionals?.filter((each) => each.type === 'OPT')).toHaveLength(1);
        },
      ),
    );
  });

  test('the owner of an answer is a pointer to the question: 27 addresses fit 512 bytes', () => {
    const asked = `${'n'.repeat(30)}.shop.svc.cluster.local`;
    const answers = Array.from({ length: 27 }, (_, i): AddressRecord => ({
      name: asked,
      type: 'A',
      ttl: 5,
      address: `10.244.0.${i}`,
    }));
    const bytes = writer.write(
      { query: readable(queryOf(asked)), rcode: 'NOERROR', authoritative: true, ...nothing, answers },
      512,
    );
    expect(decode(bytes)).toMatchObject({ flag_tc: false });
    expect(decode(bytes).answers).toHaveLength(27);
  });

  test('the target of an SRV record is not compressed (RFC 2782), its address points to it', () => {
    const target = 'db-0.db.shop.svc.cluster.local';
    const bytes = writer.write(
      {
        query: readable(queryOf('_http._tcp.db.shop.svc.cluster.local', 'SRV')),
        rcode: 'NOERROR',
        authoritative: true,
        answers: [
          {
            name: '_http._tcp.db.shop.svc.cluster.local',
            type: 'SRV',
            ttl: 5,
            priority: 0,
            weight: 100,
            port: 80,
            target,
          },
        ],
        authorities: [],
        additionals: [{ name: target, type: 'A', ttl: 5, address: '10.244.0.6' }],
      },
      512,
    );
    const wire = Buffer.from(
      target
        .split('.')
        .map((part) => String.fromCharCode(part.length) + part)
        .join(''),
    );
    expect(bytes.indexOf(wire)).toBeGreaterThan(0);
    expect(bytes.indexOf(wire, bytes.indexOf(wire) + 1)).toBe(-1);
  });

  test('an alias to the root, as an upstream may have one', () => {
    const answers: DnsRecord[] = [{ name: 'a', type: 'CNAME', ttl: 5, target: '.' }];
    const query = readable(queryOf('a'));
    const bytes = writer.write({ query, rcode: 'NOERROR', authoritative: true, ...nothing, answers }, 512);
    expect(decode(bytes).answers).toMatchObject([{ name: 'a', data: '.' }]);
    expect(decode.bytes).toBe(bytes.length);
  });

  test('a version of EDNS that is not known has an extended code', () => {
    const query = readable(queryOf('a', 'A', 1232));
    const bytes = writer.write({ query, rcode: 'BADVERS', authoritative: false, ...nothing }, 512);
    expect(decode(bytes).additionals).toMatchObject([{ type: 'OPT', extendedRcode: 1, ednsVersion: 0 }]);
  });
});
