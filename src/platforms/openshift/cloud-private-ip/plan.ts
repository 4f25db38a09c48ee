/**
 * The next step for a CloudPrivateIPConfig (cloud-network-config-controller,
 * `pkg/controller/cloudprivateipconfig`).
 */
import { parseAddress, type ParsedAddress } from '../../../objects/address.ts';
import type { Condition } from '../../../objects/meta.ts';
import type { CloudPrivateIPConfig } from '../../../objects/types/openshift.ts';

/** Keeps an object until its address is released. */
export const finalizer = 'cloudprivateipconfig.cloud.network.openshift.io/finalizer';

/** The next step of an object; the first that applies. */
export type CloudStep =
  /** The object is being deleted: its address goes, then the finalizer. */
  | { readonly kind: 'delete'; readonly from: string }
  /** The cloud moves the address without a release. */
  | { readonly kind: 'move'; readonly from: string; readonly to: string }
  /** The cloud cannot move it: the address is released, and assigned in the next step. */
  | { readonly kind: 'release'; readonly from: string }
  | { readonly kind: 'add'; readonly to: string }
  | { readonly kind: 'none' };

/** @param canMove whether the cloud moves an address from one machine to another by itself. */
export function nextStep({ metadata, spec, status }: CloudPrivateIPConfig, canMove: boolean): CloudStep {
  const from = status?.node ?? '';
  const to = spec.node ?? '';
  if (metadata.deletionTimestamp !== undefined) {
    return metadata.finalizers?.includes(finalizer) === true ? { kind: 'delete', from } : { kind: 'none' };
  }
  if (from !== '' && from !== to) {
    return canMove ? { kind: 'move', from, to } : { kind: 'release', from };
  }
  return from === '' || status?.conditions[0]?.status !== 'True' ? { kind: 'add', to } : { kind: 'none' };
}

/** Whether an object may be trusted: its node has the address. A condition that is True may also mean that it is released. */
export function isAssigned({ spec, status }: CloudPrivateIPConfig): boolean {
  const node = status?.node ?? '';
  return node !== '' && node === spec.node && status?.conditions[0]?.status === 'True';
}

/**
 * The address that an object is named after: IPv4 with dots, or IPv6 as eight groups of four lower-case digits with dots
 * between them.
 *
 * @returns undefined for a name that is no address.
 */
export function addressOf(name: string): ParsedAddress | undefined {
  const isV6 = /^[0-9a-f]{4}(?:\.[0-9a-f]{4}){7}$/.test(name);
  return parseAddress(isV6 ? name.replaceAll('.', ':') : name);
}

/** The name of the object of an address. */
export function objectNameOf({ family, canonical, value }: ParsedAddress): string {
  if (family === 'IPv4') return canonical;
  const digits = value.toString(16).padStart(32, '0');
  return (digits.match(/.{4}/g) ?? []).join('.');
}

/** The messages of a step: pending, done, and the prefix of a failure. */
export const words = {
  add: { pending: 'Adding IP address', done: 'IP address successfully added', request: 'assignment' },
  release: { pending: 'Deleting IP address', done: 'IP address successfully deleted', request: 'release' },
  move: { pending: 'Moving IP address', done: 'IP address successfully moved', request: 'move' },
} as const;

/** The progress of a step. */
export type StepOutcome =
  | { readonly kind: 'pending' }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly why: string };

/** The status of an object in a step. Its only condition is always written anew. @param now RFC 3339. */
export function statusOf(
  { metadata }: CloudPrivateIPConfig,
  node: string,
  verb: keyof typeof words,
  outcome: StepOutcome,
  now: string,
): CloudPrivateIPConfig['status'] {
  const { pending, done, request } = words[verb];
  const said: Pick<Condition, 'status' | 'reason' | 'message'> =
    outcome.kind === 'pending'
      ? { status: 'Unknown', reason: 'CloudResponsePending', message: pending }
      : outcome.kind === 'done'
        ? { status: 'True', reason: 'CloudResponseSuccess', message: done }
        : {
            ...{ status: 'False', reason: 'CloudResponseError' },
            message: `Error processing cloud ${request} request, err: ${outcome.why}`,
          };
  const observed = metadata.generation === undefined ? {} : { observedGeneration: metadata.generation };
  return {
    ...(node === '' ? {} : { node }),
    conditions: [{ type: 'Assigned', ...said, ...observed, lastTransitionTime: now }],
  };
}
