import type { ClientRequest, IncomingMessage } from 'node:http';
import { plainError } from '../../objects/status-errors.ts';
import type { ApiRequest, ReplyStream } from '../http/exchange.ts';
import { answerOf } from './backend.ts';

/**
 * Forwards the body of a request and waits for the head of the answer.
 *
 * @param open begins the request to the backend.
 * @param unreachable reports to the client why there is no answer.
 */
export async function forward(
  request: ApiRequest,
  open: () => Promise<ClientRequest>,
  unreachable: (error: unknown) => never,
): Promise<IncomingMessage> {
  const { incoming, signal } = request;
  const outgoing = await open().catch(unreachable);
  const cut = (): void => void outgoing.destroy();
  if (signal.aborted) cut();
  else signal.addEventListener('abort', cut, { once: true });
  outgoing.once('close', () => signal.removeEventListener('abort', cut));
  const answered = answerOf(outgoing);
  // The answer may be complete while the body is still sent; failures after it are ignored.
  outgoing.on('error', () => incoming.unpipe(outgoing));
  incoming.pipe(outgoing);
  const { response, upgraded } = await answered.catch(unreachable);
  if (upgraded === undefined) return response;
  upgraded.socket.destroy();
  const protocol = JSON.stringify(response.headers.upgrade ?? '');
  throw plainError(`backend tried to switch protocol ${protocol} when "" was requested`);
}

/**
 * Copies the rest of the body to the client after the chunks in `read`, as fast as the client reads. A truncated body
 * is truncated for the client too.
 */
export async function copy(
  read: readonly Buffer[],
  response: IncomingMessage,
  stream: ReplyStream,
): Promise<void> {
  try {
    for (const chunk of read) if (!stream.write(chunk)) await stream.drained();
    for await (const chunk of response) {
      if (!Buffer.isBuffer(chunk)) continue;
      if (!stream.write(chunk)) await stream.drained();
    }
    stream.end();
  } catch {
    stream.destroy();
  }
}
