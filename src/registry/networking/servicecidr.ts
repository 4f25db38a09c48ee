import { parseCidr } from '../../objects/address.ts';
import type { ServiceCIDR } from '../../objects/types/networking.generated.ts';
import { type FieldError, invalid, required } from '../validation/field-errors.ts';
import { genericStrategy, resetMetaForStatus } from '../generic/generic.ts';
import { validateImmutableField } from '../generic/metadata.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import { validateCanonicalCidr } from '../validation/network.ts';

const path = 'spec.cidrs';

/** The rules of ServiceCIDRs (`apis/networking/validation` ValidateServiceCIDR). */
export const serviceCidrStrategy = genericStrategy<ServiceCIDR>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  hasStatus: true,
  statusResets: [['metadata']],
  prepareStatus: resetMetaForStatus,
  setDefaults(object: Partial<Pick<ServiceCIDR, 'spec' | 'status'>>) {
    object.spec ??= {};
    object.status ??= {};
  },
  validateCreate: ({ spec }) => validateCidrs(spec.cidrs ?? []),
  validateUpdate: ({ spec }, old) => validateChange(spec.cidrs, old.spec.cidrs ?? []),
});

function validateCidrs(cidrs: readonly string[]): FieldError[] {
  if (cidrs.length === 0) return [required(path, 'at least one CIDR required')];
  if (cidrs.length > 2) return [invalid(path, { CIDRs: cidrs }, 'may only hold up to 2 values')];
  const errors = cidrs.flatMap((cidr, i) => validateCanonicalCidr(cidr, `${path}[${i}]`));
  if (cidrs.length === 2 && sameFamily(cidrs)) {
    const detail = 'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64';
    errors.push(invalid(path, cidrs, detail));
  }
  return errors;
}

/** A second CIDR may be added; all else is immutable. */
function validateChange(sent: readonly string[] | undefined, old: readonly string[]): FieldError[] {
  const cidrs = sent ?? [];
  if (old.length === 1 && cidrs.length === 2) {
    return [...validateImmutableField(cidrs[0], old[0], `${path}[0]`), ...validateCidrs(cidrs)];
  }
  // An absent list is printed as Go's nil slice.
  if (old.length !== cidrs.length) return validateImmutableField(sent ?? null, old, path);
  return cidrs.flatMap((cidr, i) => validateImmutableField(cidr, old[i], `${path}[${i}]`));
}

/** Invalid ones are not compared: they have errors of their own. */
function sameFamily([first = '', second = '']: readonly string[]): boolean {
  const family = parseCidr(first)?.family;
  return family !== undefined && family === parseCidr(second)?.family;
}
