import { describe, expect, it } from 'vitest';
import { create, definitionOf, update } from '../../decide.ts';

const cidrs = definitionOf('ServiceCIDR');
const of = (...list: string[]) => ({ spec: { cidrs: list } });

describe('a ServiceCIDR', () => {
  it.each([
    [[], ['spec.cidrs: Required value: at least one CIDR required']],
    [
      ['10.0.0.1/16'],
      ['spec.cidrs[0]: Invalid value: "10.0.0.1/16": must not have bits set beyond the prefix length'],
    ],
    [
      ['10.0.0.0/16', '10.1.0.0/16'],
      [
        'spec.cidrs: Invalid value: ["10.0.0.0/16","10.1.0.0/16"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64',
      ],
    ],
    [
      ['10.0.0.0/16', 'fd00::/112', '10.1.0.0/16'],
      [
        'spec.cidrs: Invalid value: {"CIDRs":["10.0.0.0/16","fd00::/112","10.1.0.0/16"]}: may only hold up to 2 values',
      ],
    ],
    [['10.0.0.0/32', 'fd00::/128'], []],
  ])('of %j has the errors %j', (list, errors) => {
    expect(create(cidrs, of(...list)).errors).toEqual(errors);
  });

  it('grows a second range and changes in no other way', () => {
    const old = create(cidrs, of('10.0.0.0/16')).stored;
    expect(update(cidrs, old, of('10.0.0.0/16', 'fd00::/112')).errors).toEqual([]);
    expect(update(cidrs, old, of('10.1.0.0/16')).errors).toEqual([
      'spec.cidrs[0]: Invalid value: "10.1.0.0/16": field is immutable',
    ]);
    expect(update(cidrs, old, { spec: {} }).errors).toEqual([
      'spec.cidrs: Invalid value: null: field is immutable',
    ]);
    expect(update(cidrs, old, of()).errors).toEqual(['spec.cidrs: Invalid value: []: field is immutable']);
  });
});
