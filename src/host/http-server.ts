import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import { createServer as createPlainServer } from './node-http.ts';
import { errorMessage } from '../objects/status.ts';
import { refusePlainHttp } from '../tls/plain-http.ts';
import { readTarget, type RequestTarget } from '../objects/go-url.ts';

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
