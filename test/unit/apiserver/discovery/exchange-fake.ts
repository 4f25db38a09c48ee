import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { ApiRequest, Handler, Reply } from '../../../../src/apiserver/http/exchange.ts';
import { requestInfo } from '../../../../src/apiserver/http/request.ts';
import { StatusError } from '../../../../src/objects/status.ts';

export interface FakeAnswer {
  status: number;
  contentType: string;
  body: string;
  bytes: Buffer;
  headers: Readonly<Record<string, string>>;
}

/** Calls a handler as the HTTP front would, and gives its one answer; a thrown Status is an answer as well. */
export async function call(
  handler: Handler,
  target: string,
  options: { method?: string; headers?: Record<string, string> } = {},
): Promise<FakeAnswer> {
  const { method = 'GET', headers = {} } = options;
  const url = new URL(target, 'https://x');
  const request: ApiRequest = {
    method,
    url: target,
    info: requestInfo(method, decodeURIComponent(url.pathname), url.searchParams),
    query: url.searchParams,
    headers,
    user: { name: 'admin', uid: '', groups: [], extra: {} },
    body: () => Promise.resolve(Buffer.alloc(0)),
    signal: new AbortController().signal,
    incoming: new IncomingMessage(new Socket()),
  };
  const answers: FakeAnswer[] = [];
  const send: Reply['send'] = (status, contentType, body, more = {}) =>
    void answers.push({ status, contentType, ...bodyOf(body), headers: more });
  const reply: Reply = {
    warn: () => undefined,
    addHeader: () => undefined,
    send,
    sendAsIs: send,
    stream: () => {
      throw new Error('no stream is expected');
    },
  };
  try {
    await handler(request, reply);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    answers.push({
      status: error.code,
      contentType: 'application/json',
      ...bodyOf(JSON.stringify(error.toStatus())),
      headers: error.headers,
    });
  }
  const [answer, second] = answers;
  if (answer === undefined || second !== undefined) throw new Error(`${answers.length} answers`);
  return answer;
}

function bodyOf(body: Parameters<Reply['send']>[2]): Pick<FakeAnswer, 'body' | 'bytes'> {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body.toString());
  return { body: bytes.toString(), bytes };
}
