import { decode } from 'dns-packet';
import type { Clock } from '../client/clock.ts';
import { Forwarder } from '../dns/forwarder.ts';
import { maxUdpSize } from '../dns/query.ts';
import type { Host } from '../host/host.ts';
import { parseResolvConf } from '../network/dns/resolv-conf.ts';

const types = { A: 1, AAAA: 28 } as const;

/**
 * Resolves a name as a program in a Pod does: from the Pod's network, with the servers and the search list of its
 * `/etc/resolv.conf`. IPv4 addresses come first.
 *
 * @param text the file.
 * @throws {Error} `no such host` if no server has the name, or why none answers.
 */
export async function lookUpInPod(
  pod: { readonly host: Host; readonly clock: Clock },
  text: string,
  name: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { nameservers, searches, options } = parseResolvConf(text);
  const forwarder = new Forwarder({
    ...pod,
    upstreams: nameservers.map((address) => ({ address, port: 53 })),
  });
  const dots = name.split('.').length - 1;
  const ndots = Number(options.find((option) => option.startsWith('ndots:'))?.slice(6) ?? 1);
  const searched = searches.map((domain) => `${name}.${domain}`);
  const candidates = name.endsWith('.') ? [name] : dots >= ndots ? [name, ...searched] : [...searched, name];
  for (const candidate of candidates) {
    const found = await Promise.all([
      ask(forwarder, candidate, 'A', signal),
      ask(forwarder, candidate, 'AAAA', signal),
    ]);
    if (found.flat().length > 0) return found.flat();
  }
  throw new Error('no such host');
}

async function ask(
  forwarder: Forwarder,
  name: string,
  type: keyof typeof types,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const labels = name.replace(/\.$/, '').split('.');
  const questionBytes = Buffer.concat([
    ...labels.map((label) => Buffer.concat([Buffer.from([Buffer.byteLength(label)]), Buffer.from(label)])),
    Buffer.from([0, 0, types[type], 0, 1]),
  ]);
  const query = { questionBytes, checkingDisabled: false, edns: undefined, udpSize: maxUdpSize };
  const { answers = [] } = decode(await forwarder.ask(query, 'udp', signal));
  return answers.flatMap((answer) => (answer.type === type ? [answer.data] : []));
}
