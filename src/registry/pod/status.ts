import { parseAddress } from '../../objects/address.ts';
import { duplicate, type FieldError, forbiddenField, invalid } from '../field-errors.ts';
import { validateImmutableField } from '../metadata.ts';
import { isQualifiedName } from '../names.ts';
import { validateLegacyAddress } from '../network.ts';
import { pushSubdomainErrors } from './field-checks.ts';
import type { Pod } from './types.ts';

const systemConditions = new Set(['PodScheduled', 'Ready', 'Initialized']);

/** The rules of a write of `/status` (`ValidatePodStatusUpdate`). */
export function validatePodStatus({ status, spec }: Pod, old: Pod): FieldError[] {
  const errors: FieldError[] = [];
  (status.conditions ?? []).forEach(({ type }, i) => {
    if (systemConditions.has(type)) return;
    for (const message of isQualifiedName(type)) {
      errors.push(invalid(`metadata.conditions[${i}].Type`, type, message));
    }
  });
  if ((spec.nodeName ?? '') !== (old.spec.nodeName ?? '')) {
    errors.push(forbiddenField('status.nodeName', 'may not be changed directly'));
  }
  const nominated = status.nominatedNodeName ?? '';
  if (nominated !== '' && nominated !== old.status.nominatedNodeName) {
    pushSubdomainErrors(errors, 'status.nominatedNodeName', nominated);
  }
  const { qosClass = '' } = status;
  errors.push(...validateImmutableField(qosClass, old.status.qosClass ?? '', 'status.qosClass'));
  errors.push(...validateAddresses(status.podIPs ?? [], 'status.podIPs'));
  const [firstHost] = status.hostIPs ?? [];
  if (firstHost !== undefined && firstHost.ip !== (status.hostIP ?? '')) {
    errors.push(invalid('status.hostIPs[0].ip', firstHost.ip, 'must be equal to `hostIP`'));
  }
  errors.push(...validateAddresses(status.hostIPs ?? [], 'status.hostIPs'));
  return errors;
}

/** At most one address of each family, in any spelling without leading zeros. */
function validateAddresses(list: readonly { ip: string }[], path: string): FieldError[] {
  const errors = list.flatMap(({ ip }, i) => validateLegacyAddress(ip, `${path}[${i}]`));
  if (list.length < 2) return errors;
  // As Go prints the internal type.
  const shown = list.map(({ ip }) => ({ IP: ip }));
  const families = new Set(list.map(({ ip }) => parseAddress(ip)?.family));
  if (families.size < 2 || list.length > 2) {
    errors.push(invalid(path, shown, 'may specify no more than one IP for each IP family'));
  }
  const texts = list.map(({ ip }) => ip);
  texts.forEach((ip, i) => {
    if (texts.indexOf(ip) < i) errors.push(duplicate(`${path}[${i}]`, { IP: ip }));
  });
  return errors;
}
