import { once } from 'node:events';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';

/**
 * Begins TLS as a client, over a connection or to an address. An `error` without a listener ends a process: the socket has
 * one until it is destroyed, also behind an abort.
 *
 * @throws {Error} of the system or TLS, or the signal's reason; the socket is destroyed then.
 */
export async function handshake(options: ConnectionOptions, signal: AbortSignal): Promise<TLSSocket> {
  const secure = connect(options);
  secure.on('error', () => secure.destroy());
  try {
    await once(secure, 'secureConnect', { signal });
    return secure;
  } catch (error) {
    secure.destroy();
    throw signal.aborted ? signal.reason : error;
  }
}
