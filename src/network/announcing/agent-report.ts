import { parseCidr, parseStrictAddress, type ParsedCidr } from '../../objects/address.ts';
import { isRecord } from '../../objects/json.ts';
import { listAt } from '../../objects/read.ts';
import type { Announcer } from './announcement-plan.ts';

/** What an agent says of its node in an annotation of its Lease, since others cannot see it; written when it changes. */
export type AgentReport = Pick<Announcer, 'interfaces' | 'sessions' | 'conflicts'>;

/** A report as JSON: the same text for what is the same. */
export function encodeReport({ interfaces, sessions, conflicts }: AgentReport): string {
  return JSON.stringify({
    interfaces: interfaces
      .map(({ name, subnets }) => ({ name, subnets: subnets.map(({ canonical }) => canonical).toSorted() }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    ...(sessions.length === 0 ? {} : { sessions: sessions.toSorted() }),
    ...(conflicts.length === 0 ? {} : { conflicts: conflicts.toSorted() }),
  });
}

/** Reads a report; parts that do not parse are left out, since an agent of another version may have written it. */
export function decodeReport(text: string | undefined): AgentReport {
  const value = parseJson(text ?? '');
  return {
    interfaces: listAt(value, 'interfaces').flatMap((entry) => {
      const name = isRecord(entry) ? entry['name'] : undefined;
      if (typeof name !== 'string') return [];
      return [{ name, subnets: textsAt(entry, 'subnets').flatMap(cidrsOf) }];
    }),
    sessions: textsAt(value, 'sessions'),
    conflicts: textsAt(value, 'conflicts').filter((address) => parseStrictAddress(address) !== undefined),
  };
}

function cidrsOf(text: string): readonly ParsedCidr[] {
  const cidr = parseCidr(text);
  return cidr === undefined ? [] : [cidr];
}

function textsAt(value: unknown, member: string): readonly string[] {
  return listAt(value, member).filter((text) => typeof text === 'string');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
