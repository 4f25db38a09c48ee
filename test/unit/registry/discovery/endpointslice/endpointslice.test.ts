import { describe, expect, it } from 'vitest';
import { create, definitionOf, update } from '../../decide.ts';

const slices = definitionOf('EndpointSlice');
const ipv4 = { addressType: 'IPv4' };

function errorsOf(body: object): string[] {
  return create(slices, body).errors;
}

describe('an EndpointSlice', () => {
  it('writes empty lists as null, and conditions and port names always', () => {
    expect(create(slices, { ...ipv4, endpoints: [], ports: [] }).object).toMatchObject({
      endpoints: null,
      ports: null,
    });
    const full = { ...ipv4, endpoints: [{ addresses: ['10.1.0.1'] }], ports: [{ port: 80 }] };
    expect(create(slices, full).object).toMatchObject({
      endpoints: [{ addresses: ['10.1.0.1'], conditions: {} }],
      ports: [{ name: '', protocol: 'TCP', port: 80 }],
    });
  });

  it('loses deprecatedTopology', () => {
    const endpoints = [{ addresses: ['10.1.0.1'], deprecatedTopology: { other: 'x' } }];
    const { object } = create(slices, { ...ipv4, endpoints });
    expect(object).not.toHaveProperty('endpoints.0.deprecatedTopology');
  });

  it.each([
    [{}, ['addressType: Required value']],
    [
      { addressType: 'IP' },
      ['addressType: Unsupported value: "IP": supported values: "FQDN", "IPv4", "IPv6"'],
    ],
    [{ ...ipv4, endpoints: [{}] }, ['endpoints[0].addresses: Required value']],
    [
      { ...ipv4, endpoints: [{ addresses: ['fd00::1'] }] },
      ['endpoints[0].addresses: Invalid value: "fd00::1": must be an IPv4 address'],
    ],
    [
      { ...ipv4, endpoints: [{ addresses: ['host'] }] },
      [
        'endpoints[0].addresses[0]: Invalid value: "host": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      ],
    ],
    [
      { addressType: 'IPv6', endpoints: [{ addresses: ['FD00:0::1'] }] },
      ['endpoints[0].addresses[0]: Invalid value: "FD00:0::1": must be in canonical form ("fd00::1")'],
    ],
    [
      { addressType: 'FQDN', endpoints: [{ addresses: ['host'] }] },
      [
        'endpoints[0].addresses[0]: Invalid value: "host": should be a domain with at least two segments separated by dots',
      ],
    ],
    [
      { ...ipv4, ports: [{ port: 80 }, { port: 81 }, { name: 'x', protocol: 'X' }] },
      [
        'ports[1].name: Duplicate value: ""',
        'ports[2].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
      ],
    ],
    [
      {
        ...ipv4,
        endpoints: [{ addresses: ['10.1.0.1'], hints: { forZones: [{ name: 'z' }, { name: 'z' }] } }],
      },
      ['endpoints[0].hints.forZones[1].name: Duplicate value: "z"'],
    ],
  ])('%j is refused', (body, errors) => {
    expect(errorsOf(body)).toEqual(errors);
  });

  it('holds a thousand endpoints, a hundred addresses each, and eight hints', () => {
    const addresses = Array.from({ length: 101 }, (_, i) => `10.1.0.${i}`);
    expect(errorsOf({ ...ipv4, endpoints: [{ addresses }] })).toEqual([
      'endpoints[0].addresses: Too many: 101: must have at most 100 items',
    ]);
    const endpoints = Array.from({ length: 1001 }, () => ({ addresses: ['10.1.0.1'] }));
    expect(errorsOf({ ...ipv4, endpoints })).toEqual([
      'endpoints: Too many: 1001: must have at most 1000 items',
    ]);
    const forNodes = Array.from({ length: 9 }, (_, i) => ({ name: `n${i}` }));
    expect(errorsOf({ ...ipv4, endpoints: [{ addresses: ['10.1.0.1'], hints: { forNodes } }] })).toEqual([
      'endpoints[0].hints.forNodes: Too many: 9: must have at most 8 items',
    ]);
  });

  it('does not look at port numbers', () => {
    expect(errorsOf({ ...ipv4, ports: [{ port: 70_000 }] })).toEqual([]);
  });

  it('counts changes of contents and labels, not of annotations', () => {
    const body = { ...ipv4, endpoints: [{ addresses: ['10.1.0.1'] }] };
    const old = create(slices, body).stored;
    const generation = (metadata: object, more: object) =>
      update(slices, old, { ...body, metadata: { ...old.metadata, ...metadata }, ...more }).stored.metadata
        .generation;
    expect(generation({}, {})).toBe(1);
    expect(generation({ annotations: { x: 'y' } }, {})).toBe(1);
    expect(generation({ labels: { x: 'y' } }, {})).toBe(2);
    expect(generation({}, { ports: [{ port: 1 }] })).toBe(2);
    const topology = { endpoints: [{ addresses: ['10.1.0.1'], deprecatedTopology: { other: 'x' } }] };
    expect(generation({}, topology)).toBe(2);
  });

  it('never changes its address type', () => {
    const old = create(slices, ipv4).stored;
    expect(update(slices, old, { addressType: 'IPv6' }).errors).toEqual([
      'addressType: Invalid value: null: field is immutable',
    ]);
  });
});
