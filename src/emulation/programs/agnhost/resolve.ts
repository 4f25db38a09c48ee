/** Names as a container of its own resolver sees them (resolv.conf(5)): asked for through the network of its Pod. */
import { isIP, isIPv6 } from 'node:net';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { encode, RECURSION_DESIRED } from 'dns-packet';
import { readAnswers } from '../../../dns/query.ts';
import type { Host } from '../../../host/host.ts';
import { parseResolvConf } from '../../../network/dns/resolv-conf.ts';

/** Milliseconds that a server has, as often as it is asked (resolv.conf(5): `timeout`, `attempts`; shorter). */
const timeoutMs = 2000;
const attempts = 2;

/**
 * The addresses of a name, those of IPv4 first; of an address, itself.
 *
 * @param files the texts of `/etc/hosts` and `/etc/resolv.conf`.
 * @throws {Error} `lookup NAME: no such host`, in Go's words.
 */
export async function resolveName(
  host: Host,
  files: { readonly hosts: string; readonly resolvConf: string },
  name: string,
): Promise<readonly string[]> {
  if (isIP(name) !== 0) return [name];
  const known = files.hosts.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    return names.includes(name) ? [address] : [];
  });
  if (known.length > 0) return known;
  const { nameservers, searches, options } = parseResolvConf(files.resolvConf);
  const dots = Number(options.find((each) => each.startsWith('ndots:'))?.slice('ndots:'.length) ?? 1);
  const searched = searches.map((domain) => `${name}.${domain}`);
  const isWhole = name.endsWith('.');
  const isLong = name.split('.').length - 1 >= dots;
  const candidates = isWhole ? [name.slice(0, -1)] : isLong ? [name, ...searched] : [...searched, name];
  for (const candidate of candidates) {
    const found = await Promise.all([
      ask(host, nameservers, candidate, 'A'),
      ask(host, nameservers, candidate, 'AAAA'),
    ]);
    if (found.flat().length > 0) return found.flat();
  }
  throw new Error(`lookup ${name}: no such host`);
}

async function ask(
  host: Host,
  nameservers: readonly string[],
  name: string,
  type: 'A' | 'AAAA',
): Promise<readonly string[]> {
  const id = randomInt(0x10000);
  const query = encode({ type: 'query', id, flags: RECURSION_DESIRED, questions: [{ type, name }] });
  for (let attempt = 0; attempt < attempts; attempt++) {
    for (const server of nameservers) {
      const answer = await answerOf(host, server, query);
      const records = answer === undefined ? undefined : readAnswers(answer);
      if (records === undefined) continue;
      return records.flatMap((record) => (record.type === type ? [record.data] : []));
    }
  }
  return [];
}

/** Undefined where the server is silent. */
async function answerOf(host: Host, server: string, query: Buffer): Promise<Buffer | undefined> {
  const socket = await host.datagram(isIPv6(server) ? '::' : '0.0.0.0', 0);
  try {
    const answer = once(socket, 'message', { signal: AbortSignal.timeout(timeoutMs) });
    socket.send(query, 53, server);
    const received: unknown[] = await answer;
    const message = received[0];
    const isOurs = Buffer.isBuffer(message) && message.readUInt16BE(0) === query.readUInt16BE(0);
    return isOurs ? message : undefined;
  } catch {
    return undefined;
  } finally {
    socket.close();
  }
}
