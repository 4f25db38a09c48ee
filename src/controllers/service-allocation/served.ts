import type { Clock } from '../../client/clock.ts';
import { isNotFound } from '../../client/errors.ts';
import type { Transport } from '../../client/transport.ts';
import { at, listAt } from '../../objects/read.ts';

/** The kinds of allocation that not every API server has. */
export interface ServedKinds {
  readonly addresses: boolean;
  readonly cidrs: boolean;
}

/** Milliseconds between tries. */
const pause = 2000;

/** Asks the server which of them it has, until it answers; undefined when the signal aborts first. */
export async function readServedKinds(
  transport: Transport,
  clock: Clock,
  signal: AbortSignal,
  failed: (error: unknown) => void,
): Promise<ServedKinds | undefined> {
  while (!signal.aborted) {
    try {
      const list = (await transport.request('GET', '/apis/networking.k8s.io/v1', { signal })).json();
      const names = new Set(listAt(list, 'resources').map((resource) => at(resource, 'name')));
      return { addresses: names.has('ipaddresses'), cidrs: names.has('servicecidrs') };
    } catch (error) {
      if (isNotFound(error)) return { addresses: false, cidrs: false };
      failed(error);
      await clock.sleep(pause, signal);
    }
  }
  return undefined;
}
