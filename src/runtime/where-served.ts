import { isAborted, whenAborted } from '../client/abort.ts';
import { isForbidden, isNotFound } from '../client/errors.ts';
import { resourceName, type ResourceType, inGroup } from '../client/resources.ts';
import { type NetworkWork, otherImplementations } from './other-implementations.ts';
import type { ControllerContext, Runnable } from './context.ts';

/** Milliseconds between looks whether a kind is served. */
const lookAgain = 15_000;

const workloadKinds = [
  ['daemonsets', 'DaemonSet'],
  ['deployments', 'Deployment'],
] as const;

/** The part that {@link whereServed} starts. */
export interface ServedKind {
  /** The kind that the work is about. */
  readonly resource: ResourceType;
  readonly work: NetworkWork;
  readonly runnables: readonly Runnable[];
}

/**
 * Runs what works on a kind from the moment on at which the server serves it, unless another project does the same work
 * in the cluster: then one line names it, and nothing is started until the process is.
 */
export function whereServed(
  context: Pick<ControllerContext, 'clients' | 'clock' | 'log'>,
  { resource, work, runnables }: ServedKind,
): Runnable {
  return {
    run: async (signal) => {
      const others = await untilKnown(context, resource, work, signal);
      if (isAborted(signal)) return;
      if (others.length > 0) {
        context.log.error(
          { reason: 'OtherImplementation', resource: resourceName(resource), by: others },
          `${others.join(', ')} does this work in the cluster (${work}): not started; leave it to that, or remove it first`,
        );
        await whenAborted(signal);
        return;
      }
      await Promise.all(runnables.map((runnable) => runnable.run(signal)));
    },
  };
}

/**
 * Whether a controller of ours may handle a kind: it is served, and no other project handles it. Checked once.
 *
 * @throws errors of requests.
 */
export async function isWorkOfOurs(
  { clients }: Pick<ControllerContext, 'clients'>,
  resource: ResourceType,
  work: NetworkWork,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await clients.for(resource).list({ limit: 1, signal });
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
  return otherImplementations(work, { workloads: await workloadNames(clients, signal) }).length === 0;
}

/** Waits until the kind is served. @returns the projects that do the work. */
async function untilKnown(
  { clients, clock }: Pick<ControllerContext, 'clients' | 'clock'>,
  resource: ResourceType,
  work: NetworkWork,
  signal: AbortSignal,
): Promise<readonly string[]> {
  while (!isAborted(signal)) {
    try {
      await clients.for(resource).list({ limit: 1, signal });
      return otherImplementations(work, { workloads: await workloadNames(clients, signal) });
    } catch {
      // Not served yet, or the server is unreachable, which its transport logs.
      await clock.sleep(lookAgain, signal);
    }
  }
  return [];
}

/** The names of all DaemonSets and Deployments; those that may not be read are left out. @throws what a list throws. */
export async function workloadNames(
  clients: ControllerContext['clients'],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const names: string[] = [];
  for (const [plural, kind] of workloadKinds) {
    const type = inGroup('apps')(kind, plural, []);
    try {
      for await (const { items } of clients.for(type).pages({ signal })) {
        for (const { metadata } of items) names.push(metadata.name ?? '');
      }
    } catch (error) {
      if (!isForbidden(error) && !isNotFound(error)) throw error;
    }
  }
  return names;
}
