import type { Logger } from 'pino';
import { ResourceClient } from '../client/resource-client.ts';
import { endpoints, endpointSlices, leases, type ResourceType } from '../client/resources.ts';
import type { Transport } from '../client/transport.ts';
import type { Lease } from '../objects/lease.ts';
import type { KubeObject } from '../objects/meta.ts';
import { parseTime } from '../objects/time.ts';

/** What kube-controller-manager calls itself in managedFields, and its Lease. */
const other = 'kube-controller-manager';

/** The controllers that write objects which kube-controller-manager writes too. */
const contested: ReadonlyMap<string, ResourceType> = new Map<string, ResourceType>([
  ['endpoints-controller', endpoints],
  ['endpointslice-controller', endpointSlices],
  ['endpointslice-mirroring-controller', endpointSlices],
]);

/** How many objects are looked at. */
const sample = 100;

/**
 * Warns, with what to do, when kube-controller-manager is alive and writes the objects of a chosen controller. Two
 * writers do no lasting harm, but each undoes what the other one did. Failures are no reason not to start.
 */
export async function warnOfOtherWriters(
  transport: Transport,
  chosen: readonly string[],
  now: number,
  log: Logger,
): Promise<readonly string[]> {
  const ours = chosen.filter((name) => contested.has(name));
  if (ours.length === 0) return [];
  try {
    if (!(await isAlive(transport, now))) return [];
    const found: string[] = [];
    for (const name of ours) {
      const resource = contested.get(name);
      if (resource !== undefined && (await writes(transport, resource))) found.push(name);
    }
    if (found.length > 0) {
      const off = `--controllers=*,${found.map((name) => `-${name}`).join(',')}`;
      log.warn(
        { controllers: found, writer: other },
        `${other} writes the same objects: start it with ${off}, or leave those controllers out here, or name the Services to serve with --service-selector`,
      );
    }
    return found;
  } catch (error) {
    log.info({ err: error }, 'could not find out whether others write the same objects');
    return [];
  }
}

/** Its Lease was renewed a moment ago; a wrong clock here costs no more than a warning. */
async function isAlive(transport: Transport, now: number): Promise<boolean> {
  const { items } = await new ResourceClient(transport, leases).list({
    namespace: 'kube-system',
    fieldSelector: `metadata.name=${other}`,
  });
  return items.some(({ spec }: Lease) => {
    const renewed = spec.renewTime === undefined ? undefined : parseTime(spec.renewTime);
    const lasts = (spec.leaseDurationSeconds ?? 15) * 1000;
    return (spec.holderIdentity ?? '') !== '' && renewed !== undefined && now - renewed < 4 * lasts;
  });
}

async function writes(transport: Transport, resource: ResourceType): Promise<boolean> {
  const { items } = await new ResourceClient(transport, resource).list({ limit: sample });
  return items.some((object: KubeObject) => {
    const managers: unknown = object.metadata.managedFields;
    return (
      Array.isArray(managers) &&
      object.metadata.managedFields?.some(({ manager }) => manager === other) === true
    );
  });
}
