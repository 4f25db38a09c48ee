import { describe, expect, it } from 'vitest';
import { create, definitionOf, update } from '../../decide.ts';

const endpoints = definitionOf('Endpoints');

describe('Endpoints', () => {
  it('have TCP ports unless they say otherwise, and no generation', () => {
    const subsets = [{ addresses: [{ ip: '10.1.0.1' }], ports: [{ port: 80 }] }];
    const { object } = create(endpoints, { subsets });
    expect(object).toMatchObject({ subsets: [{ ports: [{ port: 80, protocol: 'TCP' }] }] });
    expect(object).not.toHaveProperty('metadata.generation');
  });

  it.each([
    [[{}], ['subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`']],
    [
      [{ addresses: [{ ip: '10.1.0' }] }],
      [
        'subsets[0].addresses[0].ip: Invalid value: "10.1.0": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        'subsets[0].addresses[0].ip: Invalid value: "10.1.0": must be a valid IP address',
      ],
    ],
    [
      [{ notReadyAddresses: [{ ip: '127.0.0.1' }] }],
      [
        'subsets[0].notReadyAddresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
      ],
    ],
    [
      [{ addresses: [{ ip: '10.1.0.1' }], ports: [{ port: 0 }, { name: 'x', port: 1, protocol: 'ICMP' }] }],
      [
        'subsets[0].ports[0].name: Required value',
        'subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive',
        'subsets[0].ports[1].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
      ],
    ],
  ])('%j are refused', (subsets, errors) => {
    expect(create(endpoints, { subsets }).errors).toEqual(errors);
  });

  it('keep what was valid once, as long as it does not change', () => {
    const old = create(endpoints, { subsets: [{ addresses: [{ ip: '010.0.0.1' }] }] }).stored;
    expect(update(endpoints, old, { subsets: [{ addresses: [{ ip: '010.0.0.1' }] }] }).errors).toEqual([]);
    const grown = [{ addresses: [{ ip: '010.0.0.1' }, { ip: '010.0.0.2' }] }];
    expect(update(endpoints, old, { subsets: grown }).errors).toEqual([
      'subsets[0].addresses[1].ip: Invalid value: "010.0.0.2": must not have leading 0s',
    ]);
  });

  it('warn of unusual spellings', () => {
    expect(create(endpoints, { subsets: [{ addresses: [{ ip: 'FD00:0:0::1' }] }] }).warnings).toEqual([
      'subsets[0].addresses[0].ip: IPv6 address "FD00:0:0::1" should be in RFC 5952 canonical format ("fd00::1")',
    ]);
  });
});
