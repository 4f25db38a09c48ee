import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { WebSocket, WebSocketServer } from 'ws';
import { badRequest, StatusError } from '../../objects/status.ts';
import type { ApiRequest, Handler, ReplyStream } from './exchange.ts';
import { drained, type ExtraHeaders, HttpReply, replyContext } from './reply.ts';

/** A message, or a part of one. */
export interface MessagePart {
  readonly bytes: Buffer | string;
  readonly isLast: boolean;
}

/** How the bytes of an answer become messages. */
export interface MessageFraming {
  /** Messages are binary, or text. */
  readonly binary: boolean;
  /** The messages of the next bytes. */
  next(chunk: Buffer): MessagePart[];
}

const newline = 0x0a;

/** A message for each line, with its end: the events of a watch in JSON (apiserver `handlers/watch.go`, HandleWebSocket). */
export function lineMessages(): MessageFraming {
  return {
    binary: false,
    next(chunk) {
      const parts: MessagePart[] = [];
      let start = 0;
      for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
        parts.push({ bytes: chunk.subarray(start, end + 1), isLast: true });
        start = end + 1;
      }
      if (start < chunk.length) parts.push({ bytes: chunk.subarray(start), isLast: false });
      return parts;
    },
  };
}

const prefixLength = 4;

/** A message for each event of a watch in protobuf, without the length in front of it. */
export function prefixedMessages(): MessageFraming {
  let prefix: Buffer = Buffer.alloc(0);
  /** Bytes that the message under way still has. */
  let left = 0;
  return {
    binary: true,
    next(chunk) {
      const parts: MessagePart[] = [];
      let rest = chunk;
      while (rest.length > 0) {
        if (left === 0) {
          const missing = prefixLength - prefix.length;
          prefix = Buffer.concat([prefix, rest.subarray(0, missing)]);
          rest = rest.subarray(missing);
          if (prefix.length < prefixLength) break;
          left = prefix.readUInt32BE();
          prefix = Buffer.alloc(0);
        }
        const bytes = rest.subarray(0, left);
        left -= bytes.length;
        rest = rest.subarray(bytes.length);
        if (bytes.length > 0) parts.push({ bytes, isLast: left === 0 });
      }
      return parts;
    },
  };
}

/** A message for each piece: logs (apiserver `util/httpstream/wsstream/stream.go`). */
export function pieceMessages(encoding: 'binary' | 'base64'): MessageFraming {
  const binary = encoding === 'binary';
  return {
    binary,
    next: (chunk) => [{ bytes: binary ? chunk : chunk.toString('base64'), isLast: true }],
  };
}

/** The subprotocols of logs (`NewDefaultReaderProtocols`). */
const logProtocols: ReadonlyMap<string, 'binary' | 'base64'> = new Map([
  ['', 'binary'],
  ['binary.k8s.io', 'binary'],
  ['base64.binary.k8s.io', 'base64'],
]);

/** Bytes of a message of a client: none is expected, and what comes is thrown away. */
const maxPayload = 64 * 1024;

let servers: Promise<WebSocketServer> | undefined;

/** Loaded by the first WebSocket: no start needs it. */
async function webSockets(): Promise<WebSocketServer> {
  servers ??= import('ws').then(
    ({ WebSocketServer: Server }) =>
      new Server({ noServer: true, maxPayload, handleProtocols: ([protocol = '']) => protocol }),
  );
  return servers;
}

/**
 * Serves a request that asks for an upgrade: watches and logs by WebSocket, everything else as without it.
 *
 * @throws {StatusError} 400 or 403 for a handshake that is none; what `handler` throws, but for answers.
 */
export async function serveUpgrading(
  handler: Handler,
  request: ApiRequest,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const isStream = request.info.verb === 'watch' || request.info.subresource === 'log';
  const isWebSocket = isStream && request.headers.upgrade?.toLowerCase() === 'websocket';
  if (isWebSocket) checkHandshake(request);
  const reply = new UpgradingReply(request, socket, head, isWebSocket ? await webSockets() : undefined);
  try {
    await handler(request, reply);
  } catch (error) {
    if (reply.begun) reply.abandon();
    else if (error instanceof StatusError) reply.sendError(error);
    else throw error;
  }
}

/** Leaves the one subprotocol that is selected in the headers. @throws {StatusError} 400 or 403, as Go's server does. */
function checkHandshake({ headers, info }: ApiRequest): void {
  const { 'sec-websocket-version': version, 'sec-websocket-key': key = '' } = headers;
  if (version !== '13') throw badRequest('missing or bad WebSocket Version');
  if (!/^[+/\da-z]{22}==$/i.test(key)) throw badRequest('mismatch challenge/response');
  const sent = headers['sec-websocket-protocol'] ?? '';
  const offered = sent.split(',').map((protocol) => protocol.trim());
  const isLog = info.subresource === 'log';
  const selected = isLog ? offered.find((protocol) => logProtocols.has(protocol)) : offered[0];
  if (selected === undefined) {
    const supported = [...logProtocols.keys()].join(' ');
    const message = `requested protocol(s) are not supported: [${offered.join(' ')}]; supports [${supported}]`;
    throw new StatusError(403, 'Forbidden', message);
  }
  // Watches select none: one is taken over, several are refused.
  if (!isLog && offered.length > 1) throw badRequest('missing or bad WebSocket-Protocol');
  if (selected === '') delete headers['sec-websocket-protocol'];
  else headers['sec-websocket-protocol'] = selected;
}

/** The answer to a request that Node has handed over with its connection. */
class UpgradingReply extends HttpReply {
  readonly #request: ApiRequest;
  readonly #incoming: IncomingMessage;
  readonly #socket: Socket;
  readonly #head: Buffer;
  readonly #server: WebSocketServer | undefined;
  readonly #detach: () => void;

  /** @param server makes a WebSocket of what is streamed; undefined: it is an answer like others. */
  constructor(request: ApiRequest, socket: Duplex, head: Buffer, server: WebSocketServer | undefined) {
    if (!(socket instanceof Socket)) throw new TypeError('the connection of a request is no socket');
    const { IncomingMessage: Incoming, ServerResponse } = process.getBuiltinModule('node:http');
    const { incoming } = request;
    if (!(incoming instanceof Incoming)) throw new TypeError('HTTP/2 has no upgrades');
    const response = new ServerResponse(incoming);
    response.shouldKeepAlive = false;
    response.on('error', () => undefined);
    response.assignSocket(socket);
    response.once('finish', () => socket.end());
    const drain = (): void => void response.emit('drain');
    socket.on('drain', drain);
    super(response, replyContext(request));
    this.#request = request;
    this.#incoming = incoming;
    this.#socket = socket;
    this.#head = head;
    this.#server = server;
    this.#detach = () => {
      socket.off('drain', drain);
      response.detachSocket(socket);
    };
  }

  override stream(status: number, headers: ExtraHeaders, compress?: boolean): ReplyStream {
    if (this.#server === undefined) return super.stream(status, headers, compress);
    this.#detach();
    let accepted: WebSocket | undefined;
    this.#server.handleUpgrade(this.#incoming, this.#socket, this.#head, (client) => {
      accepted = client;
    });
    // Its refusal is on the way.
    if (accepted === undefined) throw badRequest('the WebSocket handshake is malformed');
    this.begin();
    const framing = this.#framing(headers);
    // Tells the client of a log, which may have nothing yet, that it is connected.
    if (this.#request.info.verb !== 'watch') accepted.send('', { binary: framing.binary });
    return messageStream(accepted, this.#socket, framing);
  }

  override abandon(): void {
    this.#socket.destroy();
  }

  #framing(headers: ExtraHeaders): MessageFraming {
    const { info, headers: sent } = this.#request;
    if (info.verb !== 'watch')
      return pieceMessages(logProtocols.get(sent['sec-websocket-protocol'] ?? '') ?? 'binary');
    return String(headers['Content-Type']).startsWith('application/json')
      ? lineMessages()
      : prefixedMessages();
  }
}

/** The body of an answer as messages. */
function messageStream(client: WebSocket, socket: Socket, framing: MessageFraming): ReplyStream {
  // `close` follows, of which the request's signal tells.
  client.on('error', () => undefined);
  const { binary } = framing;
  return {
    write(chunk, onSent) {
      const parts = framing.next(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
      const last = parts.pop();
      for (const { bytes, isLast } of parts) client.send(bytes, { binary, fin: isLast });
      if (last !== undefined) client.send(last.bytes, { binary, fin: last.isLast }, onSent);
      else if (onSent !== undefined) setImmediate(onSent);
      return !socket.writableNeedDrain;
    },
    drained: async () => drained(socket),
    get unsent() {
      return socket.writableLength;
    },
    end: () => client.close(normalClosure),
    destroy: () => client.terminate(),
  };
}

/** The close code of RFC 6455, 7.4.1. */
const normalClosure = 1000;
