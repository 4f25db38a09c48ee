import type { TraceReport } from '../../network/path/report.ts';
import type { Stage } from '../../network/path/stages.ts';
import type { Hop } from '../../network/path/way.ts';
import type { Arrow, Box } from './tree-of-boxes.ts';

/** The way of a packet in words and as a picture. */

/** What a report says in all. @param reachable undefined: objects do not tell. */
export function reachabilityWords(reachable: boolean | undefined): string {
  return reachable === undefined ? 'cannot tell' : reachable ? 'reachable' : 'not reachable';
}

/** `10.244.0.39 → 10.244.2.77:8080, destination changed`. */
export function sentText({ source, destination, changed }: NonNullable<Hop['sends']>): string {
  const words = changed.length === 0 ? '' : `, ${changed.join(' and ')} changed`;
  return `${source} → ${destination}${words}`;
}

/** `seen on node-1: 10.244.0.39:59434 → 10.96.8.20:80 left as 10.244.0.39:59434 → 10.244.2.77:8080`. */
export function seenText({ packet, message }: NonNullable<Hop['seen']>): string {
  if (packet === undefined) return message;
  const { received, sent } = packet;
  const came = `${received.source} → ${received.destination}`;
  const left = `${sent.source} → ${sent.destination}`;
  return came === left ? `${message}: ${came}` : `${message}: ${came} left as ${left}`;
}

/** The ways of a report, with what is the same for several in one box. */
export function boxOf({ reachable, stages, traces }: TraceReport, source: string): Box {
  const ways = traces.flatMap(({ hops, endpoints, packet }) =>
    hops.map((places, index) => {
      const last = places.at(-1);
      const result = endpoints[index]?.reachable ?? (endpoints.length === 0 ? false : undefined);
      const seen = packet === undefined ? [] : [{ text: `real packet ${packet.outcome}: ${packet.message}` }];
      const end = [{ text: reachabilityWords(result) }, ...seen].map((line) => ({
        ...({ ...line, verdict: result === undefined ? 'unknown' : result ? 'allow' : 'deny' } as const),
      }));
      return places.map((hop) => ({ hop, end: hop === last ? end : [] }));
    }),
  );
  if (ways.length > 0) return joined(ways);
  const verdict = reachable === undefined ? 'unknown' : reachable ? 'allow' : 'deny';
  return {
    title: source,
    lines: [...stages.map(stageLine), { text: reachabilityWords(reachable), verdict }],
    next: [],
  };
}

interface Place {
  readonly hop: Hop;
  readonly end: Box['lines'];
}

/** @param ways that begin at the same place. */
function joined(ways: readonly (readonly Place[])[]): Box {
  const [first] = ways.flatMap((way) => way[0] ?? []);
  const rest = Map.groupBy(
    ways.filter((way) => way.length > 1),
    ([here, there]) => JSON.stringify([here?.hop.sends, there?.hop.at, there?.hop.stages]),
  );
  const next = [...rest.values()].map((group): Arrow => {
    const sends = group[0]?.[0]?.hop.sends;
    return {
      label: sends === undefined ? '' : sentText(sends),
      to: joined(group.map((way) => way.slice(1))),
    };
  });
  const title = first?.hop.at ?? '';
  const lines = (first?.hop.stages ?? [])
    .filter(({ verdict }) => verdict !== 'pass')
    .map((stage) => stageLine(stage.object === title ? { ...stage, object: '' } : stage));
  return { title, lines: [...lines, ...(first?.end ?? [])], next };
}

function stageLine({ stage, verdict, object = '', field = '', message }: Stage): Box['lines'][number] {
  const decided = [object, field].filter((word) => word !== '').join(' ');
  return { text: `${stage}: ${decided === '' ? '' : `${decided}: `}${message}`, verdict };
}
