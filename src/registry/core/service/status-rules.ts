import { parseAddress } from '../../../objects/address.ts';
import { pushAll } from '../../../objects/lists.ts';
import type { LoadBalancerIngress, Service } from '../../../objects/types/core.generated.ts';
import {
  forbiddenField,
  invalid,
  notSupported,
  required,
  type FieldError,
} from '../../validation/field-errors.ts';
import { validateObjectMetaUpdate } from '../../generic/metadata.ts';
import { isDNS1123Subdomain } from '../../../objects/names.ts';
import { validateLegacyAddress } from '../../validation/network.ts';

const modes = ['Proxy', 'VIP'];

/** All errors of a write to `/status` (`apis/core/validation` ValidateServiceStatusUpdate). */
export function validateServiceStatusUpdate(service: Service, old: Service): FieldError[] {
  const errors = validateObjectMetaUpdate(service.metadata, old.metadata);
  const path = 'status.loadBalancer.ingress';
  const ingress = service.status.loadBalancer?.ingress ?? [];
  if (ingress.length > 0 && service.spec.type !== 'LoadBalancer') {
    errors.push(forbiddenField(path, "may only be used when `spec.type` is 'LoadBalancer'"));
    return errors;
  }
  const exempt = (old.status.loadBalancer?.ingress ?? []).map(({ ip = '' }) => ip);
  ingress.forEach((entry, i) => pushIngressErrors(errors, entry, `${path}[${i}]`, exempt));
  return errors;
}

function pushIngressErrors(
  errors: FieldError[],
  { ip = '', ipMode, hostname = '' }: LoadBalancerIngress,
  path: string,
  exempt: readonly string[],
): void {
  if (ip !== '') pushAll(errors, validateLegacyAddress(ip, `${path}.ip`, exempt));
  if (ipMode === undefined) {
    if (ip !== '') errors.push(required(`${path}.ipMode`, 'must be specified when `ip` is set'));
  } else if (ip === '') {
    errors.push(forbiddenField(`${path}.ipMode`, 'may not be specified when `ip` is not set'));
  } else if (!modes.includes(ipMode)) {
    errors.push(notSupported(`${path}.ipMode`, ipMode, modes));
  }
  if (hostname === '') return;
  for (const message of isDNS1123Subdomain(hostname)) {
    errors.push(invalid(`${path}.hostname`, hostname, message));
  }
  if (parseAddress(hostname) !== undefined) {
    errors.push(invalid(`${path}.hostname`, hostname, 'must be a DNS name, not an IP address'));
  }
}
