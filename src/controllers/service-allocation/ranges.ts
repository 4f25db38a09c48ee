import type { ServiceCidr } from '../../allocation/address-range.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { ServiceCIDR } from '../../objects/types/networking.generated.ts';
import { conditionStatus, listAt } from '../../objects/read.ts';
import type { CidrState } from './allocation-state.ts';
import type { KnownFamilies } from './plan-needs.ts';
import { familyOf } from './plan-view.ts';

/** Which kinds the API server has. */
export interface ServedKinds {
  readonly addresses: boolean;
  readonly cidrs: boolean;
}

/** The CIDRs of Service addresses. */
export interface KnownRanges {
  readonly cidrs: readonly CidrState[];
  readonly families: KnownFamilies;
}

/**
 * The ranges of ServiceCIDR objects. A deleted one, or one whose condition Ready is not True, is not ready; one without a
 * condition is. The families are those of the flags, or of the ServiceCIDR `kubernetes`, which an API server creates from
 * its flags.
 */
export function rangesOf(
  objects: Iterable<ServiceCIDR>,
  flags: readonly ServiceCidr[] | undefined,
): KnownRanges {
  const cidrs: CidrState[] = [];
  let families = flags?.map(({ range }) => range.family);
  for (const { metadata, spec, status } of objects) {
    const texts = listAt(spec, 'cidrs').filter((text) => typeof text === 'string');
    const condition = conditionStatus(listAt(status, 'conditions'), 'Ready') ?? 'True';
    const ready = metadata.deletionTimestamp === undefined && condition === 'True';
    for (const text of texts) {
      const known = cidrs.findIndex((cidr) => cidr.text === text);
      if (known < 0) cidrs.push({ text, ready });
      else if (ready) cidrs[known] = { text, ready };
    }
    if (metadata.name === 'kubernetes') families ??= texts.flatMap(familyOfCidr);
  }
  return { cidrs, families: families ?? [...new Set(cidrs.flatMap(({ text }) => familyOfCidr(text)))] };
}

/** The ranges of the flags, for a server without ServiceCIDRs. */
export function rangesOfFlags(flags: readonly ServiceCidr[] | undefined): KnownRanges {
  const cidrs = (flags ?? []).map(({ range }) => ({ text: range.text, ready: true }));
  return { cidrs, families: (flags ?? []).map(({ range }) => range.family) };
}

function familyOfCidr(text: string): IPFamily[] {
  const family = familyOf(text.split('/')[0] ?? '');
  return family === undefined ? [] : [family];
}
