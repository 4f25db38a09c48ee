import type { IPAddress } from '../../objects/types/networking.generated.ts';
import { declarative, type FieldError, invalid, required } from '../validation/field-errors.ts';
import { genericStrategy } from '../generic/generic.ts';
import { validateDeclaredImmutable } from '../generic/metadata.ts';
import { isDNS1123Subdomain, nameIsPathSegment, type NameRule } from '../../objects/names.ts';
import { isCanonicalAddress } from '../validation/network.ts';
import type { Reservation, Strategy } from '../generic/strategy.ts';

/** The allocators of cluster IPs, as IPAddress objects use them. */
export interface AddressBook {
  /** An IPAddress object has the address, in canonical form. Idempotent. */
  commit(address: string): void;
  /** The address is free again. Idempotent. */
  release(address: string): void;
}

/** An object as sent: no field is required yet. */
type ParentReference = Partial<NonNullable<IPAddress['spec']['parentRef']>>;

/** The name is the address itself, in canonical form (`ValidateIPAddressName`), so that generateName cannot be used. */
const nameIsAddress: NameRule = (name) => isCanonicalAddress(name);

/**
 * The rules of IPAddresses (`apis/networking/validation` ValidateIPAddress). One made by a client blocks its address
 * for Services; those of Services are made and removed by the Service's strategy.
 */
export function ipAddressStrategy(addresses: AddressBook): Strategy<IPAddress> {
  return {
    ...genericStrategy<IPAddress>({
      namespaced: false,
      nameRule: nameIsAddress,
      repeatsCreate: 'before',
      setDefaults(address: Partial<Pick<IPAddress, 'spec'>>) {
        address.spec ??= {};
      },
      validateCreate: ({ spec }) => validateParent(spec.parentRef),
      validateUpdate: ({ spec }, old) =>
        validateDeclaredImmutable(whole(spec.parentRef), whole(old.spec.parentRef), 'spec.parentRef'),
    }),
    // Allocated only once it is stored: until then the address may belong to an IPAddress of the same name.
    beginCreate: ({ metadata }) => onCommit(() => addresses.commit(metadata.name ?? '')),
    beginDelete: ({ metadata }) => onCommit(() => addresses.release(metadata.name ?? '')),
  };
}

function onCommit(commit: () => void): Reservation {
  return { creates: [], deletes: [], commit, rollback: () => undefined };
}

function validateParent(parent: ParentReference | null | undefined): FieldError[] {
  const path = 'spec.parentRef';
  if (!parent) return [declarative(required(path))];
  const { group = '', resource = '', name = '', namespace = '' } = parent;
  const segment = (value: string, member: string) =>
    nameIsPathSegment(value, false).map((message) => invalid(`${path}.${member}`, value, message));
  return [
    ...(group === ''
      ? []
      : isDNS1123Subdomain(group).map((message) => invalid(`${path}.group`, group, message))),
    ...(resource === '' ? [declarative(required(`${path}.resource`))] : segment(resource, 'resource')),
    ...(name === '' ? [declarative(required(`${path}.name`))] : segment(name, 'name')),
    ...(namespace === '' ? [] : segment(namespace, 'namespace')),
  ];
}

/** An absent member is as an empty one. */
function whole(parent: ParentReference | null | undefined): ParentReference | undefined {
  return parent ? { group: '', resource: '', namespace: '', name: '', ...parent } : undefined;
}
