import { listIfServed } from '../client/resource-client.ts';
import {
  namespaces,
  nodes,
  serviceCIDRs,
  services,
  addressPools,
  egressIPs,
  ingressClasses,
  ingresses,
  ipPools,
} from '../client/resources.ts';
import type { Transport } from '../client/transport.ts';
import { keyOf, type KubeObject } from '../objects/meta.ts';
import { forbiddenRanges } from '../controllers/load-balancer/pools.ts';
import type { RequestSettings } from '../controllers/load-balancer/request.ts';
import {
  type PooledCluster,
  type PoolReport,
  poolProblems,
  planEdit,
  type EditEffect,
} from '../pools/plan.ts';
import type { PoolsConfig, PoolsPlanConfig, ImportConfig } from '../flags/pools.ts';
import { type IPPoolReport, reportIPPools } from '../platforms/cni/plan.ts';
import { connectCluster, reportedCluster } from './connect.ts';
import { type EgressRow, egressRows, reportedPools } from '../view/rows/addresses.ts';
import { columns } from './tables.ts';
import { firstFew } from '../objects/lists.ts';
import type { AddressPool } from '../objects/types/servicenet.ts';
import { editPools, poolsAmong } from '../pools/edit.ts';
import { readManifests } from './apply.ts';
import { writeYaml } from '../apiserver/schema/yaml/write-yaml.ts';
import { importIngresses } from '../network/gateway/import/ingresses.ts';
import { readImport } from '../pools/import/read.ts';

/**
 * Reads the objects that decide which Service gets which address. Throws what a list throws.
 *
 * @returns `pools` undefined if the server has no AddressPools.
 */
async function readPooledCluster(
  transport: Transport,
  settings: RequestSettings,
): Promise<Omit<PooledCluster, 'pools'> & { readonly pools: PooledCluster['pools'] | undefined }> {
  const pools = await listIfServed(transport, addressPools);
  const cidrs = await listIfServed(transport, serviceCIDRs);
  const nodeList = await listIfServed(transport, nodes);
  const labels = new Map(
    (await listIfServed(transport, namespaces))?.map((namespace) => [
      keyOf(namespace),
      namespace.metadata.labels ?? {},
    ]),
  );
  return {
    services: (await listIfServed(transport, services)) ?? [],
    namespaceLabels: (namespace) => labels.get(namespace) ?? {},
    settings,
    forbidden: forbiddenRanges(nodeList ?? [], cidrs ?? []),
    pools,
  };
}

/**
 * Prints the AddressPools of a cluster, the holder of each address, the Services that wait for one, and the nodes that have
 * the addresses of EgressIPs, and the Pods that have those of IPPools.
 *
 * @throws {Error} when the cluster has neither AddressPools nor any of the others.
 */
export async function pools({ cluster, settings, output }: PoolsConfig): Promise<void> {
  const transport = await connectCluster(await reportedCluster(cluster));
  try {
    const read = await readPooledCluster(transport, settings);
    const egress = (await listIfServed(transport, egressIPs))?.flatMap(egressRows) ?? [];
    const ofPods = reportIPPools((await listIfServed(transport, ipPools)) ?? []);
    if (read.pools === undefined && egress.length === 0 && ofPods.length === 0) {
      throw new Error('the cluster has no AddressPool kind: apply deploy/crds first');
    }
    const all = reportedPools({ ...read, pools: read.pools ?? [] }, egress, ofPods, Date.now());
    process.stdout.write(
      output === 'json' ? `${JSON.stringify(all, undefined, 2)}\n` : tables(all, egress, ofPods),
    );
  } finally {
    await transport.close();
  }
}

function tables(
  { pools: list, addresses, waiting }: PoolReport,
  egress: readonly EgressRow[],
  ofPods: readonly IPPoolReport[],
): string {
  const none = list.length === 0 && addresses.length === 0;
  if (none && egress.length === 0 && ofPods.length === 0) return 'There are no AddressPools.\n';
  const usage = list.flatMap(({ name, ipv4, ipv6, problems }) => {
    const note = firstFew(problems, '; ');
    const rows = [['IPv4', ipv4] as const, ['IPv6', ipv6] as const].flatMap(([family, of]) =>
      of === undefined ? [] : [[name, family, ...[of.total, of.used, of.free, of.quarantined].map(count)]],
    );
    const shown = rows.length === 0 ? [[name, '', '0', '0', '0', '0']] : rows;
    return shown.map((row, index) => [...row, index === 0 ? note : '']);
  });
  const held = addresses.flatMap(({ address, pool = '<none>', services, reservedFor }) =>
    services.length === 0
      ? [[address, pool, `(reserved for ${reservedFor ?? ''})`, '', '']]
      : services.map(({ service, ports, announced = '<none>' }) => [
          ...[address, pool, service, ports.join(',') || '<none>', announced],
        ]),
  );
  const heading = ['POOL', 'FAMILY', 'TOTAL', 'USED', 'FREE', 'QUARANTINED', 'PROBLEMS'];
  const parts = none ? ['There are no AddressPools.\n'] : [columns([heading, ...usage])];
  if (held.length > 0) parts.push(columns([['ADDRESS', 'POOL', 'SERVICE', 'PORTS', 'ANNOUNCED'], ...held]));
  if (waiting.length > 0) {
    const rows = waiting.map(({ service, reason, message }) => [service, reason, message]);
    parts.push(columns([['WAITING', 'REASON', 'MESSAGE'], ...rows]));
  }
  if (egress.length > 0) {
    const rows = egress.map(({ address, egressIP, node = '<none>' }) => [address, egressIP, node]);
    parts.push(columns([['EGRESS ADDRESS', 'EGRESSIP', 'NODE'], ...rows]));
  }
  if (ofPods.length > 0) {
    const pools = ofPods.map(({ name, range, total, used, free }) => [
      ...[name, range, count(total), count(used), count(free)],
    ]);
    parts.push(columns([['IPPOOL', 'RANGE', 'TOTAL', 'USED', 'FREE'], ...pools]));
    const entries = ofPods.flatMap(({ name, addresses: given }) =>
      given.map(({ address, pod, interface: on }) => [address, name, pod, on]),
    );
    if (entries.length > 0) parts.push(columns([['POD ADDRESS', 'IPPOOL', 'POD', 'INTERFACE'], ...entries]));
  }
  return parts.join('\n');
}

function count(value: number): string {
  return value >= Number.MAX_SAFE_INTEGER ? '2^53 or more' : String(value);
}

/**
 * Prints which Services an edit of AddressPools would affect, without making it. Returns the exit code: 1 when a
 * Service would lose its address or get another one, or something is wrong with a pool.
 *
 * @throws {Error} for a file that cannot be read or contains anything but AddressPools.
 */
export async function poolsPlan(config: PoolsPlanConfig): Promise<0 | 1> {
  const transport = await connectCluster(await reportedCluster(config.cluster));
  try {
    const now = Date.now();
    const files = await readPools(config.files);
    const read = await readPooledCluster(transport, config.settings);
    const present = read.pools ?? [];
    const edited = editPools(present, files, config.deleted, now);
    const cluster = { ...read, pools: present };
    const effects = planEdit({ ...cluster, edited, nowMs: now });
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
  return (await readManifests(files)).flatMap(({ file, objects }) => poolsAmong(objects, file));
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

/**
 * Prints another load balancer's pools and routers as AddressPools and BGPPeers in YAML, or Ingresses as objects of Gateway
 * API, ready for `kubectl apply -f -`. What could not be converted is listed in comments above them, and on standard error.
 *
 * @throws {Error} when the cluster has none of them.
 */
export async function printImport(config: ImportConfig): Promise<void> {
  const transport = await connectCluster(config.cluster);
  try {
    const { objects, notes } = await readObjects(transport, config);
    for (const note of notes) process.stderr.write(`${note}\n`);
    const comments = notes.map((note) => `# ${note.replaceAll(/\s+/g, ' ')}\n`).join('');
    process.stdout.write(comments + objects.map(writeYaml).join('---\n'));
  } finally {
    await transport.close();
  }
}

async function readObjects(
  transport: Transport,
  { source, configMap, gatewayClass, gatewayNamespace }: ImportConfig,
): Promise<{ readonly objects: readonly KubeObject[]; readonly notes: readonly string[] }> {
  if (source !== 'ingress') {
    const { pools, peers, notes } = await readImport(transport, source, configMap);
    return { objects: [...pools, ...peers], notes };
  }
  const found = (await listIfServed(transport, ingresses)) ?? [];
  if (found.length === 0) throw new Error('the cluster has no Ingresses');
  const classes = (await listIfServed(transport, ingressClasses)) ?? [];
  const all = (await listIfServed(transport, services)) ?? [];
  return importIngresses({ ingresses: found, classes, services: all }, gatewayClass, gatewayNamespace);
}
