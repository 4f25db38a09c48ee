import type { IncomingMessage } from 'node:http';
import { badRequest, tooLarge } from '../../objects/status-errors.ts';

/** kube-apiserver's limit of a request body (apiserver `server/config.go`, MaxRequestBodyBytes). */
const maxBodyBytes = 3 * 1024 * 1024;

function overLimit(limit: number): Error {
  return tooLarge(`Request entity too large: limit is ${limit}`);
}

/**
 * Reads a body into memory, at most `limit` bytes of it: a client that announces or sends more is refused at that
 * point, and what still comes is thrown away unread.
 *
 * @throws {StatusError} 413, or 400 when the client ends in the middle.
 */
export async function readBody(incoming: IncomingMessage, limit = maxBodyBytes): Promise<Buffer> {
  if (Number(incoming.headers['content-length'] ?? 0) > limit) throw overLimit(limit);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    // The listeners stay until the message is freed; they ignore what still arrives.
    let settled = false;
    const onClose = (): void => {
      if (settled) return;
      settled = true;
      reject(badRequest('unexpected EOF'));
    };
    incoming
      .on('data', (chunk: Buffer) => {
        if (settled) return;
        length += chunk.length;
        if (length <= limit) {
          chunks.push(chunk);
          return;
        }
        settled = true;
        reject(overLimit(limit));
      })
      .on('end', () => {
        if (settled) return;
        settled = true;
        const [first] = chunks;
        resolve(first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks, length));
      })
      .on('close', onClose)
      .on('error', onClose);
  });
}
