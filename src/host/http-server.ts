import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import { createServer as createPlainServer } from './node-http.ts';
import { errorMessage } from '../objects/status.ts';
import { refusePlainHttp } from '../tls/plain-http.ts';
import { readTarget, type RequestTarget } from '../objects/formats/go-url.ts';

/** Answers a request. What it throws, at once or later, is the answer 500, or 400 for what cannot be decoded. */
export type Answer = (
  request: IncomingMessage,
  response: ServerResponse,
  target: RequestTarget,
) => void | Promise<void>;

/** A listener of requests that throws nothing, whatever they are. A target that is none is answered with 400. */
function answering(answer: Answer): RequestListener {
  return (request, response) => {
    // Of a client that has gone away: `close` follows.
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    const target = readTarget(request.url);
    if (target === undefined) {
      request.resume();
      end(response, 400, 'invalid URI for request');
      return;
    }
    const fail = (error: unknown): void => {
      end(response, error instanceof URIError ? 400 : 500, errorMessage(error));
    };
    try {
      answer(request, response, target)?.catch(fail);
    } catch (error) {
      fail(error);
    }
  };
}

function end(response: ServerResponse, status: number, message: string): void {
  // Half an answer is none: the client sees that it was cut.
  if (response.headersSent) {
    response.destroy();
    return;
  }
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' }).end(`${message}\n`);
}

/** A server of HTTP/1.1 by {@link answering}. */
export function httpServer(answer: Answer): Server {
  return createPlainServer(answering(answer));
}

/** The same by TLS. */
export function httpsServer(options: ServerOptions, answer: Answer): ReturnType<typeof createTlsServer> {
  const server = createTlsServer(options, answering(answer));
  refusePlainHttp(server);
  return server;
}

/**
 * A text as the value of a header, where a client chose it: as Go writes it, lines become blanks (net/http
 * `headerNewlineToSpace`), and as Go redirects, what is not ASCII is escaped (`hexEscapeNonASCII`).
 */
export function headerValue(text: string): string {
  return text
    .replaceAll(/[\r\n]/g, ' ')
    .trim()
    .replaceAll(/[^\t\x20-\x7e]+/g, (part) =>
      [...Buffer.from(part)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
    );
}

/** What an access log says of a request beside its own words. */
interface Answered {
  readonly status: number;
  /** Of the body that was sent. */
  readonly bytes: number;
  /** Milliseconds since 1970. */
  readonly atMs: number;
}

/** The parts of a request that an access log has. */
export type LoggedRequest = Pick<IncomingMessage, 'method' | 'url' | 'httpVersion' | 'headers'> & {
  readonly client: string;
};

/** How a server writes its access log: nginx and httpd in the format `combined`, others in a short line of ours. */
export type AccessLogFormat = 'combined' | 'short';

/** A line of an access log, with its end. What a client chose is escaped: it cannot end the line. */
export function accessLine(format: AccessLogFormat, request: LoggedRequest, answered: Answered): string {
  const { method = '', url = '', httpVersion, headers, client } = request;
  const { status, bytes, atMs } = answered;
  const agent = escaped(headers['user-agent']);
  if (format === 'short') return `${method} ${escaped(url)} ${status} ${bytes} from ${client} "${agent}"\n`;
  const user = escaped(userOf(headers.authorization));
  const line = escaped(`${method} ${url} HTTP/${httpVersion}`);
  return `${client} - ${user} [${commonTime(atMs)}] "${line}" ${status} ${bytes} "${escaped(headers.referer)}" "${agent}"\n`;
}

/** Text in quotation marks, as nginx escapes it (`log_format … escape=default`); `-` for nothing. */
function escaped(text: string | undefined): string {
  if (text === undefined || text === '') return '-';
  return text.replaceAll(/["\\]|[^\x20-\x7e]/g, (character) =>
    [...Buffer.from(character, character > '\xff' ? 'utf8' : 'latin1')]
      .map((byte) => `\\x${byte.toString(16).toUpperCase().padStart(2, '0')}`)
      .join(''),
  );
}

/** The user of Basic authentication. */
function userOf(authorization: string | undefined): string | undefined {
  const [, credentials] = /^basic +([\w+/=-]+)$/i.exec(authorization ?? '') ?? [];
  return credentials === undefined ? undefined : Buffer.from(credentials, 'base64').toString().split(':')[0];
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** `28/Nov/2026:06:48:20 +0000`: images are in UTC. */
function commonTime(atMs: number): string {
  const text = new Date(atMs).toISOString();
  const [year = '', month = '', day = ''] = text.slice(0, 10).split('-');
  return `${day}/${months[Number(month) - 1] ?? ''}/${year}:${text.slice(11, 19)} +0000`;
}
