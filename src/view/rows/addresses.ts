import { notAnnounced } from '../../network/announcing/announcement-plan.ts';
import type { AnnouncingNode } from '../../network/path/entry.ts';
import { ipFamilies, parseAddress } from '../../objects/address.ts';
import type { EgressIP } from '../../objects/types/openshift.ts';
import { formatTime } from '../../objects/formats/time.ts';
import type { IPPoolReport } from '../../platforms/cni/plan.ts';
import { type PooledCluster, planReport, type PoolReport, poolSquares } from '../../pools/plan.ts';
import type { AddressRow, AnnouncerRow, EgressAddressRow, PoolRow, WaitingRow } from './rows.ts';

/** Pools, who has which address, who announces, and which addresses packets leave with, as rows. */

/** Of a pool that has more addresses, none is shown for itself. */
const mostSquares = 1024;

/** As `servicenet pools -o json` tells it. @param now milliseconds since 1970. */
export function poolRows(
  cluster: PooledCluster,
  now: number,
): {
  readonly pool: readonly PoolRow[];
  readonly address: readonly AddressRow[];
  readonly waiting: readonly WaitingRow[];
} {
  const report = planReport(cluster, now);
  const squaresOf = poolSquares(cluster, now, mostSquares);
  const pool = report.pools.map((one): PoolRow => {
    const families = ipFamilies.flatMap((family) => {
      const usage = family === 'IPv4' ? one.ipv4 : one.ipv6;
      if (usage === undefined) return [];
      const { total, used, free, quarantined } = usage;
      const squares = squaresOf(one.name, family)?.map(({ address, state, untilMs }) => ({
        ...{ address, state },
        ...(untilMs === undefined ? {} : { until: formatTime(untilMs) }),
      }));
      return [{ family, total, used, free, quarantined, ...(squares === undefined ? {} : { squares }) }];
    });
    const { name, addresses, problems } = one;
    return { key: name, name, addresses, families, problems };
  });
  const address = report.addresses.map(({ services, ...rest }): AddressRow => ({
    key: rest.address,
    ...rest,
    holders: services,
  }));
  return { pool, address, waiting: report.waiting.map((one) => ({ key: one.service, ...one })) };
}

/** What `servicenet pools -o json` prints. */
export interface ReportedPools extends PoolReport {
  /** Absent: there are none. */
  readonly egress?: readonly EgressRow[];
  readonly ipPools?: readonly IPPoolReport[];
}

export function reportedPools(
  cluster: PooledCluster,
  egress: readonly EgressRow[],
  ipPools: readonly IPPoolReport[],
  now: number,
): ReportedPools {
  return {
    ...planReport(cluster, now),
    ...(egress.length === 0 ? {} : { egress }),
    ...(ipPools.length === 0 ? {} : { ipPools }),
  };
}

export function announcerRows(agents: readonly AnnouncingNode[]): readonly AnnouncerRow[] {
  return agents.map(({ node, isAlive, report }) => ({
    key: node,
    ...{ node, isAlive },
    interfaces: report.interfaces.map(({ name, subnets }) => ({
      name,
      subnets: subnets.map(({ canonical }) => canonical),
    })),
    sessions: report.sessions,
    announced: report.announced,
    refused: report.refused.map(({ address, reason, holder }) => ({
      ...{ address, reason, holder },
      message: notAnnounced[reason],
    })),
  }));
}

/** An address of an EgressIP. */
export interface EgressRow {
  /** Canonical; as the spec has it where it is none. */
  readonly address: string;
  /** The name of the object. */
  readonly egressIP: string;
  /** The node that has it; undefined: none. */
  readonly node: string | undefined;
}

/** The addresses of an EgressIP in the order of its spec. */
export function egressRows({ metadata, spec, status }: EgressIP): readonly EgressRow[] {
  const items = new Map(
    (status?.items ?? []).map(({ egressIP, node }) => [parseAddress(egressIP)?.canonical, node]),
  );
  return spec.egressIPs.map((text) => {
    const address = parseAddress(text)?.canonical;
    return { address: address ?? text, egressIP: metadata.name ?? '', node: items.get(address) };
  });
}

/** The same, with keys. */
export function egressAddressRows(object: EgressIP): readonly EgressAddressRow[] {
  return egressRows(object).map(({ address, egressIP, node }) => ({
    ...{ key: `${egressIP} ${address}`, address, egressIP },
    ...(node === undefined ? {} : { node }),
  }));
}
