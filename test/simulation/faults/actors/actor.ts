import type { Clients } from '../../../../src/client/resource-client.ts';
import { StatusError } from '../../../../src/objects/status.ts';

/** Where most things happen. */
export const namespace = 'default';

/** A user who changes the cluster in one of several ways. */
export interface Deed {
  /** How often, compared with others. */
  readonly weight: number;
  do(clients: Clients): Promise<void>;
}

/** What a server may say to a user whose wish does not fit the cluster: not found, a conflict, not valid, full. */
const understandable = [403, 404, 409, 422];

/** Does what may be refused; undefined when it was. */
export async function attempt<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof StatusError && understandable.includes(error.code)) return undefined;
    // kube-apiserver's answer when a range is full.
    if (error instanceof StatusError && error.code === 500 && error.message.includes('range is full'))
      return undefined;
    throw error;
  }
}
