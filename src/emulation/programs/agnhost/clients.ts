/** Subcommands of agnhost that run as a process: connect, inclusterclient, and what shows files of DNS. */
import { createHash } from 'node:crypto';
import { request as httpsRequest } from 'node:https';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { AgnhostRun } from './context.ts';
import { responseOf } from './dial.ts';
import { errorMessage } from '../../../objects/error-message.ts';

/** Connects to `HOST:PORT`, and reports the failure (test/images/agnhost/connect). */
export async function connect(run: AgnhostRun): Promise<void> {
  const { args, place } = run;
  const [, name = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(args.others[0] ?? '') ?? [];
  const timeout = args.duration('timeout', 1000);
  const protocol = args.text('protocol', 'tcp').toLowerCase();
  const fail = (word: string): void => {
    place.write('stderr', `${word}\n`);
    run.end(1);
  };
  if (protocol === 'sctp') {
    fail('OTHER: SCTP is not available');
    return;
  }
  const signal = timeout === 0 ? new AbortController().signal : AbortSignal.timeout(timeout);
  try {
    if (protocol === 'udp') {
      const socket = await place.host.datagram(name.includes(':') ? '::' : '0.0.0.0', 0);
      run.keep({ close: () => void socket.close() });
      const answer = once(socket, 'message', { signal });
      await new Promise<void>((resolve) => socket.connect(Number(port), name, resolve));
      socket.send('hostname\n');
      await answer;
    } else (await place.host.connect(name, Number(port), { signal })).destroy();
    run.end(0);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (signal.aborted || code === 'ETIMEDOUT') fail('TIMEOUT');
    else if (code === 'ECONNREFUSED') fail('REFUSED');
    else if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') fail(`DNS: ${name}`);
    else fail(`OTHER: ${errorMessage(error)}`);
  }
}

const accountFolder = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Asks the API server for its health, again and again, with the token of the moment. */
export async function inClusterClient(run: AgnhostRun): Promise<void> {
  const { args, place } = run;
  const interval = args.number('poll-interval', 30) * 1000;
  const host = place.environment.get('KUBERNETES_SERVICE_HOST') ?? 'kubernetes.default.svc';
  const port = Number(place.environment.get('KUBERNETES_SERVICE_PORT') ?? '443');
  for (;;) {
    run.print('calling /healthz');
    try {
      const token = (await place.readFile(`${accountFolder}/token`)).toString().trim();
      const ca = await place.readFile(`${accountFolder}/ca.crt`);
      run.print(`authz_header=${createHash('sha256').update(`Bearer ${token}`).digest('base64url')}`);
      const outgoing = httpsRequest({
        ...{ host, port, ca, path: '/healthz' },
        headers: { authorization: `Bearer ${token}` },
      });
      outgoing.end();
      const response = await responseOf(outgoing);
      response.resume();
      if (response.statusCode !== 200) run.print(`status with error: ${response.statusCode}`);
    } catch (error) {
      run.print(`error: ${errorMessage(error)}`);
    }
    await delay(interval);
  }
}

/** Search domains, or servers, of `/etc/resolv.conf`. */
export async function resolvConfWords(run: AgnhostRun, keyword: 'search' | 'nameserver'): Promise<void> {
  const text = (await run.place.readFile('/etc/resolv.conf')).toString();
  const words = text.split('\n').flatMap((line) => {
    const [first, ...rest] = line.trim().split(/\s+/);
    return first === keyword ? rest : [];
  });
  run.print(words.join(','));
  run.end(0);
}

/** Prints `/etc/hosts`. */
export async function etcHosts(run: AgnhostRun): Promise<void> {
  run.place.write('stdout', (await run.place.readFile('/etc/hosts')).toString());
  run.end(0);
}
