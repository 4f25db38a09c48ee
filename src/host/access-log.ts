import type { IncomingMessage } from 'node:http';

/** What an access log says of a request beside its own words. */
export interface Answered {
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
