import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { asError } from '../../host/host.ts';
import { request } from '../../host/node-http.ts';
import { errorMessage } from '../../objects/status.ts';

/** `wget` and `curl` of one URL of HTTP, with the options that people use in Pods. */

/** Where a request comes from, and what it prints. */
export interface FetchPlace {
  readonly stdout: (text: string | Buffer) => void;
  readonly stderr: (text: string) => void;
  /** @throws {Error} where no server has the name. */
  readonly lookUp: (name: string, signal: AbortSignal) => Promise<readonly string[]>;
  /** @throws the system's error. */
  readonly connect: (address: string, port: number, signal: AbortSignal) => Promise<Socket>;
  readonly signal: AbortSignal;
}

/** A request of `wget` or `curl`. */
export interface Fetch {
  readonly program: 'wget' | 'curl';
  readonly url: URL;
  readonly method: 'GET' | 'HEAD';
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly timeoutMs: number;
  readonly isQuiet: boolean;
  readonly prints: { readonly head: boolean; readonly body: boolean };
  /** Answers of 400 and more are failures. */
  readonly fails: boolean;
  /** Behind the body, with `%{http_code}`. */
  readonly writeOut: string;
}

const maxBodyBytes = 4 * 1024 * 1024;

/** Undefined for options that are not known, and for other URLs than those of HTTP. */
export function fetchOf(program: 'wget' | 'curl', args: readonly string[]): Fetch | undefined {
  const values = new Map<string, string[]>();
  const flags = new Set<string>();
  const urls: string[] = [];
  const [withValue, known] =
    program === 'curl'
      ? [
          /^(?:[mHow]|max-time|connect-timeout|header|output|write-out)$/,
          /^(?:[sSfiIkL]|silent|show-error|fail|include|head)$/,
        ]
      : [/^(?:[OT]|timeout|header|tries|t|output-document)$/, /^(?:q|quiet|spider|S)$/];
  const words = [...args];
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    const [, long, equals] = /^--([\w-]+)(?:=(.*))?$/s.exec(word) ?? [];
    const letters = /^-(\w.*)$/s.exec(word)?.[1] ?? '';
    if (long !== undefined) {
      if (withValue.test(long))
        values.set(long, [...(values.get(long) ?? []), equals ?? words.shift() ?? '']);
      else if (known.test(long)) flags.add(long);
      else return undefined;
    } else if (letters !== '') {
      for (let i = 0; i < letters.length; i++) {
        const letter = letters[i] ?? '';
        if (withValue.test(letter)) {
          const rest = letters.slice(i + 1);
          values.set(letter, [...(values.get(letter) ?? []), rest === '' ? (words.shift() ?? '') : rest]);
          break;
        }
        if (!known.test(letter)) return undefined;
        flags.add(letter);
      }
    } else urls.push(word);
  }
  const [given = ''] = urls;
  const text = /^\w+:\/\//.test(given) ? given : `http://${given}`;
  if (urls.length !== 1 || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.protocol !== 'http:') return undefined;
  const value = (...names: string[]): string | undefined =>
    names.flatMap((name) => values.get(name) ?? []).at(-1);
  const output = value('o', 'output', 'O', 'output-document');
  const isDiscarded = output === '/dev/null' || flags.has('spider');
  // Nothing can be written to a file.
  if (!isDiscarded && (program === 'wget' ? output !== '-' : output !== undefined && output !== '-'))
    return undefined;
  const seconds = Number(value('m', 'max-time', 'connect-timeout', 'T', 'timeout') ?? 60);
  const isHead = flags.has('I') || flags.has('head') || flags.has('spider');
  return {
    ...{ program, url, method: isHead ? 'HEAD' : 'GET' },
    headers: (values.get('H') ?? values.get('header') ?? []).flatMap((line) => {
      const [, name, text2 = ''] = /^([\w-]+):\s*(.*)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, text2] as const];
    }),
    timeoutMs: Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 60_000,
    isQuiet: flags.has('s') || flags.has('silent') || flags.has('q') || flags.has('quiet'),
    prints: {
      head: flags.has('i') || flags.has('include') || flags.has('I') || flags.has('head'),
      body: !isDiscarded,
    },
    fails: program === 'wget' || flags.has('f') || flags.has('fail'),
    writeOut: value('w', 'write-out') ?? '',
  };
}

/** @returns the exit code of curl(1) or wget. */
export async function fetchUrl(run: FetchPlace, fetch: Fetch | undefined): Promise<number> {
  if (fetch === undefined) return 2;
  const { program, url, prints, isQuiet, writeOut } = fetch;
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const limit = AbortSignal.timeout(fetch.timeoutMs);
  const signal = AbortSignal.any([limit, run.signal]);
  const fail = (curlCode: number, why: string): number => {
    if (program === 'wget') run.stderr(`wget: ${why}\n`);
    else if (!isQuiet) run.stderr(`curl: (${curlCode}) ${why}\n`);
    return program === 'wget' ? 1 : curlCode;
  };
  try {
    const [address = ''] = /^[\d.]+$|:/.test(host) ? [host] : await run.lookUp(host, signal);
    const answer = await ask(run, fetch, address, signal);
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of answer) {
      if (!Buffer.isBuffer(chunk)) continue;
      size += chunk.length;
      if (size > maxBodyBytes) return fail(23, `the answer is longer than ${maxBodyBytes} bytes`);
      chunks.push(chunk);
    }
    const { statusCode = 0, statusMessage = '', rawHeaders } = answer;
    if (fetch.fails && statusCode >= 400)
      return fail(22, `server returned error: HTTP/1.1 ${statusCode} ${statusMessage}`);
    if (prints.head) {
      const lines = rawHeaders.flatMap((name, i) =>
        i % 2 === 0 ? [`${name}: ${rawHeaders[i + 1] ?? ''}`] : [],
      );
      run.stdout([`HTTP/1.1 ${statusCode} ${statusMessage}`, ...lines, '', ''].join('\r\n'));
    }
    if (prints.body) run.stdout(Buffer.concat(chunks));
    if (writeOut !== '')
      run.stdout(writeOut.replaceAll('%{http_code}', String(statusCode)).replaceAll('\\n', '\n'));
    return 0;
  } catch (error) {
    if (run.signal.aborted) throw asError(run.signal.reason);
    if (limit.aborted) return fail(28, 'timed out');
    const code = error instanceof Error && 'code' in error ? error.code : '';
    if (code === 'ECONNREFUSED') return fail(7, `cannot connect to ${url.host}: Connection refused`);
    return fail(code === undefined || code === '' ? 6 : 7, `${url.host}: ${errorMessage(error)}`);
  }
}

async function ask(
  run: FetchPlace,
  { url, method, headers }: Fetch,
  address: string,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const socket = await run.connect(address, Number(url.port || 80), signal);
  socket.on('error', () => undefined);
  const asked = request({
    ...{ method, path: `${url.pathname}${url.search}`, createConnection: () => socket, signal },
    headers: {
      host: url.host,
      'user-agent': 'servicenet',
      connection: 'close',
      ...Object.fromEntries(headers),
    },
  });
  asked.end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  return answer;
}
