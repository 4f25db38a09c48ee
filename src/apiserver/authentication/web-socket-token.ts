import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { decodeBase64Url } from '../../objects/base64url.ts';

const prefix = 'base64url.bearer.authorization.k8s.io.';

/** A bearer token among the subprotocols of a WebSocket. */
interface WebSocketToken {
  readonly token: string;
  /** The other subprotocols, for the handshake. */
  readonly protocols: string;
}

/**
 * The bearer token that a WebSocket shows as the subprotocol `base64url.bearer.authorization.k8s.io.<token>`, since
 * browsers can set no headers (apiserver `pkg/authentication/request/websocket/protocol.go`).
 *
 * @returns `none` when it shows none, `refused` for one that cannot be read, a second one, or one without another
 *   subprotocol that could be answered.
 */
export function webSocketToken(headers: IncomingHttpHeaders): WebSocketToken | 'none' | 'refused' {
  const { upgrade = '', connection = '', 'sec-websocket-protocol': sent = '' } = headers;
  if (upgrade.toLowerCase() !== 'websocket' || !connection.toLowerCase().includes('upgrade')) return 'none';
  const protocols = sent.split(',').map((protocol) => protocol.trim());
  const [encoded, second] = protocols
    .filter((protocol) => protocol.startsWith(prefix))
    .map((protocol) => protocol.slice(prefix.length));
  if (second !== undefined) return 'refused';
  if (encoded === undefined || encoded === '') return 'none';
  const token = decode(encoded);
  const others = protocols.filter((protocol) => !protocol.startsWith(prefix));
  if (token === undefined || others.length === 0) return 'refused';
  return { token, protocols: others.join(',') };
}

/** Base64url of UTF-8. */
function decode(encoded: string): string | undefined {
  const bytes = decodeBase64Url(encoded);
  return typeof bytes !== 'number' && isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}
