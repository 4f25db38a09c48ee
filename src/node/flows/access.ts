import { createHash } from 'node:crypto';
import type { Clock } from '../../client/clock.ts';
import type { Transport } from '../../client/transport.ts';
import { flowsAudience, flowsPath } from '../../network/flows/agents.ts';
import { type Flow, namespacesOf } from '../../network/flows/flow.ts';
import { at, isRecord, type JsonRecord, listAt, recordAt } from '../../objects/json.ts';

/**
 * Who may look at flows, as the API server says: TokenReview, then SubjectAccessReview, as kube's servers beside the API
 * server delegate both (apiserver `server/options/{authentication,authorization}.go`). Answers are kept briefly.
 */

/** Milliseconds that an answer is kept: a right that was taken away ends streams after that time. */
const yesMs = 60_000;
/** A right that was given takes effect soon. */
const noMs = 10_000;
const maxKept = 4096;
/** Unknown tokens of a second that the API server is asked about. */
const maxTokens = 10;

/** The members of a SubjectAccessReview that say who. */
interface ReviewedUser {
  readonly name: string;
  readonly spec: JsonRecord;
}

/** Too many unknown tokens came. */
export class TooManyTokens extends Error {
  override readonly name = 'TooManyTokens';
}

interface Kept<T> {
  readonly untilMs: number;
  readonly value: T;
}

/** Asks the API server about users. */
export class FlowAccess {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #users = new Map<string, Kept<ReviewedUser | undefined>>();
  readonly #rights = new Map<string, Kept<boolean>>();
  /** When the API server was last asked about tokens. */
  #asked: readonly number[] = [];

  constructor(transport: Transport, clock: Clock) {
    this.#transport = transport;
    this.#clock = clock;
  }

  /**
   * The user of a token; undefined: it is nobody's.
   *
   * @throws {TooManyTokens}
   * @throws {StatusError} of the API server.
   * @throws {ConnectionError} where it does not answer.
   */
  async userOf(token: string): Promise<ReviewedUser | undefined> {
    const key = createHash('sha256').update(token).digest('hex');
    return await this.#kept(this.#users, key, async () => {
      const now = this.#clock.monotonic();
      this.#asked = this.#asked.filter((time) => now - time < 1000);
      if (this.#asked.length >= maxTokens) throw new TooManyTokens('too many tokens came: try again');
      this.#asked = [...this.#asked, now];
      return await this.#review(token);
    });
  }

  /** Whether a user may look at flows at all. @throws as {@link userOf}. */
  async mayLook(user: ReviewedUser): Promise<boolean> {
    return await this.#isAllowed(user, { nonResourceAttributes: { path: flowsPath, verb: 'get' } });
  }

  /**
   * The flows that a user may see: those whose namespaces are all of them ones in which the user may list Pods, and those
   * in no namespace where that is so in all. @throws as {@link userOf}.
   */
  async visibleTo(user: ReviewedUser, flows: readonly Flow[]): Promise<readonly Flow[]> {
    if (flows.length === 0 || (await this.#mayList(user, ''))) return flows;
    const names = new Set(flows.flatMap(namespacesOf));
    const allowed = new Set<string>();
    for (const name of names) if (await this.#mayList(user, name)) allowed.add(name);
    return flows.filter((flow) => {
      const own = namespacesOf(flow);
      return own.length > 0 && own.every((name) => allowed.has(name));
    });
  }

  /** @param namespace empty: all. */
  async #mayList(user: ReviewedUser, namespace: string): Promise<boolean> {
    const resourceAttributes = { namespace, verb: 'list', group: '', version: 'v1', resource: 'pods' };
    return await this.#isAllowed(user, { resourceAttributes });
  }

  async #isAllowed(user: ReviewedUser, attributes: JsonRecord): Promise<boolean> {
    const spec = { ...user.spec, ...attributes };
    return await this.#kept(this.#rights, JSON.stringify(spec), async () => {
      const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
      const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
      const answer = await this.#transport.request('POST', path, { body: review, timeoutMs: reviewMs });
      return at(answer.json(), 'status', 'allowed') === true;
    });
  }

  async #review(token: string): Promise<ReviewedUser | undefined> {
    const audiences = audiencesOf(token).includes(flowsAudience) ? [flowsAudience] : [];
    const spec = { token, ...(audiences.length === 0 ? {} : { audiences }) };
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec };
    const path = '/apis/authentication.k8s.io/v1/tokenreviews';
    const answer = (
      await this.#transport.request('POST', path, { body: review, timeoutMs: reviewMs })
    ).json();
    if (at(answer, 'status', 'authenticated') !== true) return undefined;
    // An authenticator that knows no audiences says none: the token is for the API server then.
    const of = listAt(answer, 'status', 'audiences');
    if (!audiences.every((each) => of.includes(each))) return undefined;
    const { username: name, uid, groups, extra } = recordAt(answer, 'status', 'user');
    if (typeof name !== 'string' || name === '') return undefined;
    return { name, spec: { user: name, uid, groups, extra } };
  }

  async #kept<T>(known: Map<string, Kept<T>>, key: string, ask: () => Promise<T>): Promise<T> {
    const before = known.get(key);
    if (before !== undefined && this.#clock.monotonic() < before.untilMs) return before.value;
    const value = await ask();
    const isYes = value !== undefined && value !== false;
    known.delete(key);
    known.set(key, { value, untilMs: this.#clock.monotonic() + (isYes ? yesMs : noMs) });
    if (known.size > maxKept) {
      const [first] = known.keys();
      if (first !== undefined) known.delete(first);
    }
    return value;
  }
}

/** Milliseconds that a review may take, as kube's do. */
const reviewMs = 10_000;

/** What a JWT says that it is for. The API server checks it: here it only says what to ask for. */
function audiencesOf(token: string): readonly unknown[] {
  const [, payload, signature] = token.split('.');
  if (payload === undefined || signature === undefined) return [];
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString());
    return isRecord(claims) ? [claims['aud']].flat() : [];
  } catch {
    return [];
  }
}
