import { isRecord, textAt } from '../../../objects/json.ts';
import type {
  JournalAnswer,
  ObjectAnswer,
  PoolsAnswer,
  PoolsPlanAnswer,
  PoolsPlanRequest,
  ReachAnswer,
  ReachPlanAnswer,
  ReachPlanRequest,
  SessionAnswer,
  SessionRequest,
  TraceAnswer,
  TraceRequest,
} from '../../messages.ts';
import { plainDeep } from './plain-deep.ts';

/** The session of this browser with the page's server: in `localStorage`, which each port has of its own. */

const stored = 'servicenet.session';

/** An answer that is no success: the server's word and sentence. */
export class AnswerError extends Error {
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Exchanges the key in the fragment of the URL for a session, and takes it out of the URL; without one, the session that is
 * stored.
 *
 * @returns undefined where there is none.
 * @throws {AnswerError} the key is not that of the server.
 */
export async function openSession(): Promise<string | undefined> {
  const key = /^#k=([\w-]+)$/.exec(location.hash)?.[1];
  if (key === undefined) return localStorage.getItem(stored) ?? undefined;
  history.replaceState(history.state, '', `${location.pathname}${location.search}`);
  const { session } = await post('/data/session', { key });
  localStorage.setItem(stored, session);
  return session;
}

/** Forgets a session that the server does not know; one that another tab has got meanwhile stays. */
export function eraseSession(session: string): void {
  if (localStorage.getItem(stored) === session) localStorage.removeItem(stored);
}

/** Requests with a body, and their answers. */
interface Posts {
  readonly '/data/session': readonly [SessionRequest, SessionAnswer];
  readonly '/data/trace': readonly [TraceRequest, TraceAnswer];
  readonly '/data/reach/plan': readonly [ReachPlanRequest, ReachPlanAnswer];
  readonly '/data/pools/plan': readonly [PoolsPlanRequest, PoolsPlanAnswer];
}

/** @throws {AnswerError} the server says no, or does not answer (`Disconnected`). */
export async function post<Path extends keyof Posts>(
  path: Path,
  body: Posts[Path][0],
): Promise<Posts[Path][1]> {
  const headers = { 'content-type': 'application/json' };
  // The server that answers has given out this script too: both are of one build.
  return plainDeep(
    await answerOf(path, { method: 'POST', headers, body: JSON.stringify(body) }),
  ) as Posts[Path][1];
}

/** One object as YAML. @throws {AnswerError} as {@link post} does. */
export async function objectOf(kind: string, namespace: string, name: string): Promise<ObjectAnswer> {
  const query = new URLSearchParams({ kind, namespace, name });
  const answer = await answerOf(`/data/object?${query.toString()}`, {});
  // Its lines stay lines.
  return { yaml: textAt(answer, 'yaml'), managedFields: textAt(answer, 'managedFields') };
}

/** Who reaches whom. @param question as the URL of the request has it. @throws {AnswerError} as {@link post} does. */
export async function reachAnswer(question: Readonly<Record<string, string>>): Promise<ReachAnswer> {
  const query = new URLSearchParams(question);
  return plainDeep(await answerOf(`/data/reach?${query.toString()}`, {})) as ReachAnswer;
}

/** What has changed of late. @param question as the URL of the request has it. @throws {AnswerError} as {@link post} does. */
export async function journalAnswer(question: Readonly<Record<string, string>>): Promise<JournalAnswer> {
  const query = new URLSearchParams(question);
  return plainDeep(await answerOf(`/data/journal?${query.toString()}`, {})) as JournalAnswer;
}

/** What `servicenet pools` prints. @throws {AnswerError} as {@link post} does. */
export async function poolsAnswer(): Promise<PoolsAnswer> {
  return plainDeep(await answerOf('/data/pools', {})) as PoolsAnswer;
}

async function answerOf(path: string, request: RequestInit): Promise<unknown> {
  const session = localStorage.getItem(stored);
  const headers = new Headers(request.headers);
  if (session !== null) headers.set('authorization', `Bearer ${session}`);
  const answer = await fetch(path, { ...request, headers, cache: 'no-store' }).catch(() => {
    throw new AnswerError('Disconnected', 'the server of this page does not answer');
  });
  const content: unknown = await answer.json().catch(() => undefined);
  if (answer.ok && isRecord(content)) return content;
  const message = textAt(content, 'message') || `the server answers ${answer.status}`;
  throw new AnswerError(textAt(content, 'reason') || String(answer.status), message);
}
