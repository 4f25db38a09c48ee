/** CoreDNS, which the image of agnhost has too, as far as Kubernetes' tests configure it: the names of one `hosts` block. */
import { isIP, isIPv6 } from 'node:net';
import { MessageWriter } from '../../../dns/message-writer.ts';
import { type DnsQuery, readQuery } from '../../../dns/query.ts';
import type { AgnhostRun } from './context.ts';

const port = 53;
/** Seconds (`plugin/hosts`). */
const ttl = 3600;
/** Plugins that change no answer. */
const silent: ReadonlySet<string> = new Set(['errors', 'log']);
const serverBlocks: ReadonlySet<string> = new Set(['.', '.:53']);

/** Answers names of the file `-conf` by UDP. SERVFAIL for others: `hosts` has no authority to deny them. */
export async function coredns(run: AgnhostRun): Promise<void> {
  const path = run.args.text('conf', 'Corefile');
  const names = hostsOf(path, (await run.place.readFile(path)).toString());
  run.onTerm = () => run.end(0);
  const writer = new MessageWriter();
  const nothing = { authoritative: false, answers: [], authorities: [], additionals: [] };
  await run.receive(port, (message) => {
    const query = readQuery(message);
    if (query === undefined) return undefined;
    if ('refused' in query) return writer.write({ query, rcode: query.refused, ...nothing }, message.length);
    const addresses = names.get(query.name.toLowerCase());
    if (addresses === undefined) return writer.write({ query, rcode: 'SERVFAIL', ...nothing }, query.udpSize);
    const answers = answersTo(query, addresses);
    return writer.write({ query, rcode: 'NOERROR', ...nothing, authoritative: true, answers }, query.udpSize);
  });
  run.print('.:53');
}

function answersTo({ name, type }: DnsQuery, addresses: readonly string[]) {
  return addresses.flatMap((address) => {
    const own = isIPv6(address) ? 'AAAA' : 'A';
    return type === own ? [{ type: own, name, ttl, address } as const] : [];
  });
}

/**
 * Addresses by name, in lower case.
 *
 * @throws {Error} in CoreDNS' words for a directive that is not known here.
 */
function hostsOf(path: string, text: string): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  const blocks: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    const [first = '', ...rest] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (first === '') continue;
    if (first === '}') blocks.pop();
    else if (blocks.length === 2) {
      if (isIP(first) === 0) continue;
      for (const name of rest) {
        const key = name.toLowerCase().replace(/\.$/, '');
        names.set(key, [...(names.get(key) ?? []), first]);
      }
    } else if (blocks.length === 0 ? serverBlocks.has(first) : first === 'hosts') {
      if (rest.at(-1) === '{') blocks.push(first);
    } else if (!silent.has(first))
      throw new Error(`${path}:${index + 1} - Error during parsing: Unknown directive '${first}'`);
  }
  return names;
}
