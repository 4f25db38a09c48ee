import { listIfServed } from '../client/resource-client.ts';
import { egressIPs, ipPools } from '../client/resources.ts';
import type { PoolsConfig } from '../config/pools.ts';
import { type IPPoolReport, reportIPPools } from '../controllers/index.ts';
import { readPooledCluster } from '../pools/read-cluster.ts';
import { planReport, type PoolReport } from '../pools/plan-report.ts';
import { connectCluster } from './cluster.ts';
import { type EgressRow, egressRows } from './egress-rows.ts';
import { columns } from './tables.ts';
import { firstFew } from '../objects/lists.ts';

/**
 * Prints the AddressPools of a cluster, the holder of each address, the Services that wait for one, and the nodes that have
 * the addresses of EgressIPs, and the Pods that have those of IPPools.
 *
 * @throws {Error} when the cluster has neither AddressPools nor any of the others.
 */
export async function pools({ cluster, settings, output }: PoolsConfig): Promise<void> {
  const transport = await connectCluster(cluster);
  try {
    const read = await readPooledCluster(transport, settings);
    const egress = (await listIfServed(transport, egressIPs))?.flatMap(egressRows) ?? [];
    const ofPods = reportIPPools((await listIfServed(transport, ipPools)) ?? []);
    if (read.pools === undefined && egress.length === 0 && ofPods.length === 0) {
      throw new Error('the cluster has no AddressPool kind: apply deploy/crds first');
    }
    const report = planReport({ ...read, pools: read.pools ?? [] }, Date.now());
    const all = {
      ...report,
      ...(egress.length === 0 ? {} : { egress }),
      ...(ofPods.length === 0 ? {} : { ipPools: ofPods }),
    };
    process.stdout.write(
      output === 'json' ? `${JSON.stringify(all, undefined, 2)}\n` : tables(report, egress, ofPods),
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
