import { describe, expect, it } from 'vitest';
import { parseNetworkSelections } from '../../../../src/network/attachments/attachments.ts';

const plain = { ips: [], defaultRoute: [], unsupported: [] };

describe('a list of names', () => {
  it.each([
    ['net', [{ namespace: 'shop', name: 'net' }]],
    [
      'a,b',
      [
        { namespace: 'shop', name: 'a' },
        { namespace: 'shop', name: 'b' },
      ],
    ],
    [
      ' other/a@eth7 , b@veth.1 ',
      [
        { namespace: 'other', name: 'a', interface: 'eth7' },
        { namespace: 'shop', name: 'b', interface: 'veth.1' },
      ],
    ],
    [
      'a,a',
      [
        { namespace: 'shop', name: 'a' },
        { namespace: 'shop', name: 'a' },
      ],
    ],
    ['a@fifteen-letters', [{ namespace: 'shop', name: 'a', interface: 'fifteen-letters' }]],
  ])('%s', (text, expected) => {
    expect(parseNetworkSelections(text, 'shop')).toEqual(expected.map((each) => ({ ...plain, ...each })));
  });

  it.each([
    ['a/b/c', "failed at '/'"],
    ['a@b@c', "failed at '@'"],
    ['Net', "mismatch @ 'Net'"],
    ['-net', "mismatch @ '-net'"],
    ['net_1', "mismatch @ 'net_1'"],
    ['a.b', "mismatch @ 'a.b'"],
    ['UPPER/net', "mismatch @ 'UPPER'"],
    ['a,,b', "mismatch @ ''"],
    ['shop/', "mismatch @ 'shop/'"],
    ['net@sixteen-letters-', "interface name 'sixteen-letters-'"],
    ['net@a b', "interface name 'a b'"],
    ['net@..', "interface name '..'"],
  ])('refuses %s', (text, message) => {
    expect(() => parseNetworkSelections(text, 'shop')).toThrow(message);
  });
});

describe('JSON', () => {
  it('reads all members', () => {
    const element = {
      ...{ name: 'net', namespace: 'other', interface: 'test1', mac: 'C2-11-22-33-44-66' },
      ips: ['10.2.2.42/24', '2001:db8::5'],
      'default-route': ['10.2.2.1'],
      portMappings: [{ hostPort: 8080, containerPort: 80 }],
      'cni-args': { a: 'b' },
    };
    expect(parseNetworkSelections(JSON.stringify([element, { name: 'a' }]), 'shop')).toEqual([
      {
        ...{ name: 'net', namespace: 'other', interface: 'test1', mac: 'c2:11:22:33:44:66' },
        ips: ['10.2.2.42/24', '2001:db8::5'],
        ...{ defaultRoute: ['10.2.2.1'], unsupported: ['portMappings'] },
      },
      { ...plain, name: 'a', namespace: 'shop' },
    ]);
    expect(parseNetworkSelections('[]', 'shop')).toEqual([]);
    const empty = '[{"name":"a","default-route":[""]}]';
    expect(parseNetworkSelections(empty, 'shop')).toEqual([{ ...plain, name: 'a', namespace: 'shop' }]);
  });

  it.each([
    ['{"name":"a"}', 'it is no list'],
    ['"a"', 'it is no list'],
    ['[{"name":"a"}', 'JSON format'],
    ['a,["b"]', 'JSON format'],
    ['["a"]', 'an element is no object'],
    ['[null]', 'an element is no object'],
    ['[{}]', 'an element has no name'],
    ['[{"name":7}]', 'name is no string'],
    ['[{"name":"A"}]', "mismatch @ 'A'"],
    ['[{"name":"a","namespace":"b/c"}]', "mismatch @ 'b/c'"],
    ['[{"name":"a","interface":"sixteen-letters-"}]', "interface name 'sixteen-letters-'"],
    ['[{"name":"a","interface":"a/b"}]', "interface name 'a/b'"],
    ['[{"name":"a","ips":"10.0.0.1"}]', 'ips is no list of strings'],
    ['[{"name":"a","ips":["10.0.0"]}]', 'failed to parse IP address "10.0.0"'],
    ['[{"name":"a","ips":["10.0.0.1/33"]}]', 'failed to parse CIDR "10.0.0.1/33"'],
    ['[{"name":"a","mac":"c2:11"}]', 'address c2:11: invalid MAC address'],
    ['[{"name":"a","default-route":["x"]}]', 'invalid IP address: x'],
  ])('refuses %s', (text, message) => {
    expect(() => parseNetworkSelections(text, 'shop')).toThrow(message);
  });
});
