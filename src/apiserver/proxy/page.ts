import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';

/** The start of a response, read to see whether its links can be rewritten. */
interface Page {
  /**
   * The whole page, one character for each byte: links are ASCII, and whatever the page is encoded in stays so.
   * Undefined when the answer is no page or cannot be read as one.
   */
  readonly text?: string;
  /** The chunks that were read. */
  readonly read: readonly Buffer[];
}

/** Longer pages go through as they are. */
const maxBytes = 4 * 1024 * 1024;
const unzip = promisify(gunzip);

/** Reads an answer that is an HTML page, so that its links can lead through the proxy; leaves any other alone. */
export async function readPage(response: IncomingMessage, method: string): Promise<Page> {
  const [type = ''] = (response.headers['content-type'] ?? '').split(';');
  const encoding = response.headers['content-encoding'] ?? '';
  const readable = encoding === '' || encoding === 'gzip';
  if (type.trim() !== 'text/html' || !readable || method === 'HEAD') return { read: [] };
  const read: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of response.iterator({ destroyOnReturn: false })) {
      if (!Buffer.isBuffer(chunk)) continue;
      read.push(chunk);
      length += chunk.length;
      if (length > maxBytes) return { read };
    }
    const body = Buffer.concat(read);
    const plain = encoding === 'gzip' ? await unzip(body, { maxOutputLength: 4 * maxBytes }) : body;
    return { text: plain.toString('latin1'), read };
  } catch {
    // Truncated or mislabelled content: the client gets it unchanged.
    return { read };
  }
}
