import type { PoolsPlanConfig } from '../config/pools.ts';
import { readPooledCluster } from '../pools/read-cluster.ts';
import { poolProblems } from '../pools/plan-cluster.ts';
import { planEdit, type EditEffect } from '../pools/plan-edit.ts';
import type { AddressPool } from '../objects/types/servicenet.ts';
import { addressPools, bgpPeers } from '../client/resources.ts';
import { formatTime } from '../objects/time.ts';
import { isDNS1123Subdomain } from '../objects/names.ts';
import { connectCluster } from './cluster.ts';
import { columns } from './tables.ts';
import { objectsOf, readManifests } from './apply.ts';

/**
 * Prints which Services an edit of AddressPools would affect, without making it. Returns the exit code: 1 when a
 * Service would lose its address or get another one, or something is wrong with a pool.
 *
 * @throws {Error} for a file that cannot be read or contains anything but AddressPools.
 */
export async function poolsPlan(config: PoolsPlanConfig): Promise<0 | 1> {
  const transport = await connectCluster(config.cluster);
  try {
    const now = Date.now();
    const files = await readPools(config.files);
    const read = await readPooledCluster(transport, config.settings);
    const present = read.pools ?? [];
    const edited = edit(present, files, config.deleted, now);
    const cluster = { ...read, pools: present };
    const effects = planEdit({ ...cluster, edited, now });
    const problems = poolProblems(edited, read.forbidden);
    process.stdout.write(
      config.output === 'json'
        ? `${JSON.stringify({ effects, problems }, undefined, 2)}\n`
        : text(effects, problems),
    );
    return problems.length > 0 || effects.some(({ effect }) => effect === 'moves' || effect === 'loses')
      ? 1
      : 0;
  } finally {
    await transport.close();
  }
}

async function readPools(files: readonly string[]): Promise<AddressPool[]> {
  const pools: AddressPool[] = [];
  for (const manifest of await readManifests(files)) {
    for (const object of await objectsOf(manifest)) {
      // An import prints them beside its pools; they assign nothing.
      if (object.kind === bgpPeers.kind) continue;
      if (object.kind !== addressPools.kind || !addressPools.isObject(object)) {
        throw new Error(
          `${manifest.file}: ${object.kind ?? 'an object'} ${object.metadata.name ?? ''} is not an AddressPool`,
        );
      }
      const { name = '' } = object.metadata;
      const [wrong] = name === '' ? ['it has no name'] : isDNS1123Subdomain(name);
      if (wrong !== undefined)
        throw new Error(`${manifest.file}: AddressPool ${JSON.stringify(name)}: ${wrong}`);
      pools.push(object);
    }
  }
  return pools;
}

/** A changed pool keeps its age, a new one is the youngest: the older pool has precedence in an overlap. */
function edit(
  present: readonly AddressPool[],
  files: readonly AddressPool[],
  deleted: readonly string[],
  now: number,
): AddressPool[] {
  const pools = new Map(present.map((pool) => [pool.metadata.name ?? '', pool]));
  for (const name of deleted) {
    if (!pools.delete(name)) throw new Error(`there is no AddressPool ${name} to delete`);
  }
  for (const pool of files) {
    const { name = '' } = pool.metadata;
    const creationTimestamp = pools.get(name)?.metadata.creationTimestamp ?? formatTime(now);
    pools.set(name, { ...pool, metadata: { ...pool.metadata, creationTimestamp } });
  }
  return [...pools.values()];
}

function text(effects: readonly EditEffect[], problems: readonly string[]): string {
  const rows = effects.map(({ service, family, effect, from = '', to = '' }) => [
    service,
    family,
    effect,
    from,
    to,
  ]);
  const table =
    rows.length === 0
      ? 'No Service is affected.\n'
      : columns([['SERVICE', 'FAMILY', 'EFFECT', 'FROM', 'TO'], ...rows]);
  return [table, ...problems.map((problem) => `Problem: ${problem}\n`)].join('');
}
