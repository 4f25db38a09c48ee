import { minorVersion } from '../../../objects/kubernetes-version.ts';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Writable } from 'node:stream';
import type {
  Container,
  ExecAction,
  HTTPGetAction,
  Pod,
  Probe,
  TCPSocketAction,
} from '../../../objects/types/core.generated.ts';
import type { ContainerRuntime, ProbeResult } from '../container-runtime.ts';
import { errorMessage } from '../../../objects/status.ts';
import { joinHostPort } from '../../../objects/address.ts';
import { requestPath } from '../../../objects/formats/go-url.ts';
import { handshake } from '../../../tls/handshake.ts';
import type { Clock, Timer } from '../../../client/clock.ts';
import { countAnswer, isDue, periodMsOf, type ProbeKind, timeoutMsOf, unasked } from '../plan-behaviour.ts';

/** Bytes of a program's output that an Event shows (pkg/probe `maxProbeMessageLength`). */
const maxOutputBytes = 10 * 1024;

/** The parts of the runtime that a prober uses. */
type Asking = Pick<ContainerRuntime, 'exec' | 'connect'>;

/** Most redirects that a probe follows (net/http). */
const maxRedirects = 10;

/**
 * Asks a container (pkg/probe/http, tcp, exec, grpc). What goes wrong is an answer, in the kubelet's words.
 *
 * @param signal aborts at the timeout of the probe.
 */
export async function askProbe(
  runtime: Asking,
  pod: Pod,
  container: Container,
  probe: Probe,
  signal: AbortSignal,
): Promise<ProbeResult> {
  const { exec, httpGet, tcpSocket, grpc } = probe;
  if (exec !== undefined) return await askExec(runtime, pod, container, probe, exec, signal);
  if (httpGet !== undefined) return await askHttp(runtime, pod, container, httpGet, signal);
  if (tcpSocket !== undefined) return await askTcp(runtime, pod, container, tcpSocket, signal);
  if (grpc !== undefined) {
    const { askGrpc } = await import('./ask-grpc.ts');
    return await askGrpc(runtime, pod, addressOf(pod), grpc, probe, signal);
  }
  return {
    success: false,
    output: `missing probe handler for ${pod.metadata.namespace}/${pod.metadata.name}`,
  };
}

async function askExec(
  runtime: Asking,
  pod: Pod,
  { name }: Container,
  { timeoutSeconds = 1 }: Probe,
  { command = [] }: ExecAction,
  signal: AbortSignal,
): Promise<ProbeResult> {
  const said: Buffer[] = [];
  let size = 0;
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (size < maxOutputBytes) said.push(chunk.subarray(0, maxOutputBytes - size));
      size += chunk.length;
      done();
    },
  });
  try {
    const code = await runtime.exec(pod, name, command, { stdout: output, stderr: output, signal });
    return { success: code === 0, output: Buffer.concat(said).toString() };
  } catch (error) {
    if (!signal.aborted) return { success: false, output: errorMessage(error) };
    const shown = JSON.stringify(command.join(' '));
    return { success: false, output: `command timed out: ${shown} timed out after ${timeoutSeconds}s` };
  }
}

async function askTcp(
  runtime: Asking,
  pod: Pod,
  container: Container,
  { port, host = '' }: TCPSocketAction,
  signal: AbortSignal,
): Promise<ProbeResult> {
  const target = { host: host === '' ? addressOf(pod) : host, port: portOf(container, port) };
  try {
    const socket = await runtime.connect(pod, target.host, target.port, signal);
    socket.destroy();
    return { success: true, output: '' };
  } catch (error) {
    const why = signal.aborted ? 'i/o timeout' : connectFailure(error);
    return { success: false, output: `dial tcp ${joined(target)}: ${why}` };
  }
}

/**
 * One HTTP request from the node, as probes and hooks make it. Certificates are not checked; redirects to other hosts
 * count as success.
 */
export async function askHttp(
  runtime: Asking,
  pod: Pod,
  container: Container,
  action: HTTPGetAction,
  signal: AbortSignal,
): Promise<ProbeResult> {
  const { scheme = 'HTTP', host = '' } = action;
  const target = { host: host === '' ? addressOf(pod) : host, port: portOf(container, action.port) };
  const origin = `${scheme.toLowerCase()}://${joined(target)}`;
  let path = requestPath(action.path ?? '/');
  let asked = `${origin}${path}`;
  try {
    let url = new URL(origin);
    for (let redirects = 0; redirects <= maxRedirects; redirects++) {
      const { status, location } = await requestOnce(runtime, pod, { url, path }, action, signal);
      const isRedirect = status >= 300 && status < 400 && location !== undefined;
      const next = isRedirect ? new URL(location, asked) : undefined;
      if (next === undefined || next.hostname !== url.hostname) {
        const success = status >= 200 && status < 400;
        return { success, output: success ? '' : `HTTP probe failed with statuscode: ${status}` };
      }
      url = next;
      path = `${next.pathname}${next.search}`;
      asked = next.href;
    }
    return { success: false, output: `Get "${asked}": stopped after ${maxRedirects} redirects` };
  } catch (error) {
    const why = signal.aborted
      ? 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
      : `dial tcp ${joined(target)}: ${connectFailure(error)}`;
    return { success: false, output: `Get "${asked}": ${why}` };
  }
}

async function requestOnce(
  runtime: Asking,
  pod: Pod,
  { url, path }: { readonly url: URL; readonly path: string },
  { httpHeaders }: HTTPGetAction,
  signal: AbortSignal,
): Promise<{ status: number; location: string | undefined }> {
  const isTls = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port);
  const plain = await runtime.connect(pod, host, port, signal);
  let socket: Socket = plain;
  try {
    if (isTls) {
      socket = await handshake({ socket: plain, rejectUnauthorized: false }, signal);
    }
    // Not imported: that would load the fetch of Node.js too, 13 MiB.
    const { request } = process.getBuiltinModule('node:http');
    const headers: Record<string, string> = {
      'User-Agent': `kube-probe/${minorVersion}`,
      Accept: '*/*',
      Connection: 'close',
    };
    for (const { name, value } of httpHeaders ?? []) {
      Reflect.deleteProperty(headers, name);
      headers[name] = value;
    }
    const outgoing = request({
      ...{ method: 'GET', path, headers, host, port, signal },
      defaultPort: isTls ? 443 : 80,
      createConnection: () => socket,
    });
    outgoing.end();
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.once('response', resolve);
      outgoing.on('error', reject);
    });
    return { status: response.statusCode ?? 0, location: response.headers.location };
  } finally {
    socket.destroy();
    plain.destroy();
  }
}

function addressOf({ status }: Pod): string {
  return status.podIP ?? '';
}

/** The number of a port that may be a name of one of the container's ports. */
function portOf({ ports = [] }: Container, port: number | string): number {
  if (typeof port === 'number') return port;
  const named = ports.find(({ name }) => name === port);
  return named?.containerPort ?? Number(port);
}

function joined({ host, port }: { readonly host: string; readonly port: number }): string {
  return joinHostPort(host, port);
}

const failures: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'connect: connection refused'],
  ['EHOSTUNREACH', 'connect: no route to host'],
  ['ENETUNREACH', 'connect: network is unreachable'],
  ['ECONNRESET', 'read: connection reset by peer'],
]);

/** A failed connection in the words of Go's net package. */
function connectFailure(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return failures.get(code) ?? errorMessage(error);
}

export interface ProbeWorkerOptions {
  readonly clock: Clock;
  readonly kind: ProbeKind;
  readonly probe: Probe;
  /** Monotonic milliseconds when the container started. */
  readonly startedAtMs: number;
  /** Rejects or answers; the signal aborts at the timeout of the probe. */
  readonly ask: (signal: AbortSignal) => Promise<ProbeResult>;
  /** True when the container's startup probe has succeeded, or it has none. */
  readonly hasStarted: () => boolean;
  /** The verdict has changed. */
  readonly decided: (verdict: boolean) => void;
  /** A probe has failed. */
  readonly refused: (output: string) => void;
}

/** Runs one probe of one container, from its start to its end (pkg/kubelet/prober/worker.go). */
export class ProbeWorker {
  readonly #options: ProbeWorkerOptions;
  readonly #stopped = new AbortController();
  #count = unasked;
  #timer: Timer | undefined;
  #isAsking = false;

  constructor(options: ProbeWorkerOptions) {
    this.#options = options;
    this.#tick();
  }

  stop(): void {
    this.#stopped.abort();
    this.#timer?.cancel();
  }

  /** Probes now, unless a probe is running: a readiness probe does so when its container has started. */
  trigger(): void {
    this.#timer?.cancel();
    if (!this.#isAsking) this.#tick();
  }

  #tick(): void {
    if (this.#stopped.signal.aborted) return;
    const { clock, kind, probe, startedAtMs, hasStarted } = this.#options;
    this.#timer = clock.after(periodMsOf(probe), () => this.#tick());
    // A probe that takes longer than its period is not started again meanwhile.
    if (this.#isAsking || !isDue(kind, probe, clock.monotonic() - startedAtMs, hasStarted())) return;
    this.#isAsking = true;
    this.#ask().then(
      (result) => this.#hear(result),
      (error: unknown) => this.#hear({ success: false, output: String(error) }),
    );
  }

  async #ask(): Promise<ProbeResult> {
    const { clock, probe, ask } = this.#options;
    const limit = new AbortController();
    const stop = (): void => limit.abort();
    this.#stopped.signal.addEventListener('abort', stop, { once: true });
    const timer = clock.after(timeoutMsOf(probe), stop);
    try {
      return await ask(limit.signal);
    } finally {
      timer.cancel();
      this.#stopped.signal.removeEventListener('abort', stop);
    }
  }

  #hear({ success, output }: ProbeResult): void {
    this.#isAsking = false;
    if (this.#stopped.signal.aborted) return;
    const { probe, decided, refused } = this.#options;
    const before = this.#count;
    this.#count = countAnswer(before, probe, success);
    if (!success) refused(output);
    const { verdict } = this.#count;
    if (verdict !== undefined && verdict !== before.verdict) decided(verdict);
  }
}
