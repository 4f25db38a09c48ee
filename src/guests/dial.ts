import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { isIPv6, isIP } from 'node:net';
import type { Host } from '../host/host.ts';
import { request as httpRequest } from '../host/node-http.ts';
import type { ProgramContainer } from '../emulation/program.ts';
import { errorMessage } from '../objects/status.ts';
import { randomInt } from 'node:crypto';
import { encode, RECURSION_DESIRED } from 'dns-packet';
import { readAnswers } from '../dns/message.ts';
import { parseResolvConf } from '../network/dns/resolv-conf.ts';

/** The time of one attempt. */
const timeoutMs = 5000;
/** Most bytes of an answer. */
const maxBodyBytes = 1024 * 1024;
const maxTries = 1000;

/** The parts of its container that a client needs. */
type Dialer = Pick<ProgramContainer, 'host' | 'hosts' | 'resolvConf'>;

/** A status, and JSON or the text of what was wrong with the request. */
export interface DialAnswer {
  readonly status: number;
  readonly body: { responses?: string[]; errors?: string[] } | string;
}

/**
 * `/dial` of netexec: calls another netexec, and returns its answers (test/images/agnhost/netexec `dialHandler`).
 *
 * @param value of a query parameter: `host`, `port`, `request`, `protocol`, `tries`.
 */
export async function dial(container: Dialer, value: (name: string) => string): Promise<DialAnswer> {
  const refused = (body: string): DialAnswer => ({ status: 400, body: `${body}\n` });
  const [name = '', port = '', request = '', protocol = '', tries = ''] = [
    ...['host', 'port', 'request', 'protocol', 'tries'],
  ].map(value);
  if (!/^[-+]?\d*$/.test(tries)) {
    return refused(
      `tries parameter is invalid. strconv.Atoi: parsing ${JSON.stringify(tries)}: invalid syntax`,
    );
  }
  if (request === '') return refused('request parameter not specified. <nil>');
  const ask = { '': bodyFrom, http: bodyFrom, udp: askUdp, sctp: askSctp }[protocol.toLowerCase()];
  if (ask === undefined) return refused(`unsupported protocol. ${protocol}`);
  if (!/^\d+$/.test(port) || Number(port) > 65535) {
    return refused(`host and/or port param are invalid. lookup ${port}: invalid port`);
  }
  let address: string;
  try {
    [address = ''] = await resolveName(container, name === '' ? 'localhost' : name);
  } catch (error) {
    return refused(`host and/or port param are invalid. ${errorMessage(error)}`);
  }
  const responses: string[] = [];
  const errors: string[] = [];
  for (let i = 0; i < Math.min(tries === '' ? 1 : Number(tries), maxTries); i++) {
    try {
      responses.push(await ask(container.host, address, Number(port), request));
    } catch (error) {
      errors.push(errorMessage(error));
    }
  }
  return {
    status: 200,
    body: { ...(responses.length > 0 ? { responses } : {}), ...(errors.length > 0 ? { errors } : {}) },
  };
}

/** The body of an answer, from the network of a container. @throws the transport's error. */
export async function bodyFrom(host: Host, address: string, port: number, path: string): Promise<string> {
  const signal = AbortSignal.timeout(timeoutMs);
  const socket = await host.connect(address, port, { signal });
  try {
    const outgoing = httpRequest({
      ...{ host: address, port, path: `/${path}`, signal },
      createConnection: () => socket,
      headers: { Connection: 'close' },
    });
    outgoing.end();
    // The listener of errors stays: one may come behind the head.
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.once('response', resolve);
      outgoing.once('error', reject);
    });
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of response) {
      if (!Buffer.isBuffer(chunk) || (size += chunk.length) > maxBodyBytes) continue;
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString();
  } finally {
    socket.destroy();
  }
}

async function askUdp(host: Host, address: string, port: number, request: string): Promise<string> {
  const socket = await host.datagram(isIPv6(address) ? '::' : '0.0.0.0', 0);
  try {
    // A connected socket hears that the port is closed.
    socket.connect(port, address);
    await once(socket, 'connect');
    const answer = once(socket, 'message', { signal: AbortSignal.timeout(timeoutMs) });
    socket.send(request);
    const received: unknown[] = await answer;
    return String(received[0]);
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'AbortError';
    const why = isLate ? 'i/o timeout' : errorMessage(error);
    throw new Error(`reading from udp connection failed. err:'read udp ${address}:${port}: ${why}'`, {
      cause: error,
    });
  } finally {
    socket.close();
  }
}

/** Node.js has no SCTP sockets: the error of Linux without its module. */
function askSctp(): Promise<string> {
  return Promise.reject(new Error('sctp dial failed. err:protocol not supported'));
}

/** Milliseconds that a server has, as often as it is asked (resolv.conf(5): `timeout`, `attempts`; shorter). */
const queryTimeoutMs = 2000;
const attempts = 2;

/**
 * The addresses of a name as a resolver of the container finds them (`/etc/hosts`, resolv.conf(5)), through the network of
 * its Pod: those of IPv4 first; of an address, itself.
 *
 * @throws {Error} `lookup NAME: no such host`, in Go's words.
 */
export async function resolveName(
  { host, hosts, resolvConf }: Dialer,
  name: string,
): Promise<readonly string[]> {
  if (isIP(name) !== 0) return [name];
  const known = hosts.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    return names.includes(name) ? [address] : [];
  });
  if (known.length > 0) return known;
  const { nameservers, searches, options } = parseResolvConf(await resolvConf());
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
    const answer = once(socket, 'message', { signal: AbortSignal.timeout(queryTimeoutMs) });
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
