/** Retries of webhook calls, as client-go's REST client does them. */
import { setTimeout } from 'node:timers/promises';
import type { Dispatcher } from 'undici';

/** Retries of a webhook that responds with Retry-After (client-go `rest/request.go` maxRetries). */
const maxRetries = 10;
const headers = {
  'content-type': 'application/json',
  accept: 'application/json, */*',
  'user-agent': 'kube-apiserver-admission',
};

/** The timeout has passed while the client waited for a Retry-After. */
export class WaitingTooLong extends Error {
  override readonly name = 'WaitingTooLong';
}

/**
 * Posts a review. 429 and server errors with `Retry-After` in seconds are retried, {@link maxRetries} times at most
 * (client-go `rest/with_retry.go`). Redirects are returned and not followed: they would let a webhook reach the network
 * of the server (CVE-2020-8561).
 *
 * @throws {WaitingTooLong} when the signal aborts between two attempts; the transport's errors.
 */
export async function postUntilAnswered(
  dispatcher: Dispatcher,
  url: string,
  body: string,
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> {
  const { origin, pathname, search } = new URL(url);
  const path = `${pathname}${search}`;
  for (let attempt = 0; ; attempt++) {
    const answer = await dispatcher.request({ origin, path, method: 'POST', headers, body, signal });
    const seconds = attempt < maxRetries ? retryAfter(answer) : undefined;
    if (seconds === undefined) return answer;
    await answer.body.dump();
    try {
      await setTimeout(seconds * 1000, undefined, { signal });
    } catch (error) {
      throw new WaitingTooLong('the webhook wants to be asked again later', { cause: error });
    }
  }
}

/** Seconds until the next attempt; undefined where the answer is final. */
function retryAfter({ statusCode, headers }: Dispatcher.ResponseData): number | undefined {
  if (statusCode !== 429 && (statusCode < 500 || statusCode > 599)) return undefined;
  const header = headers['retry-after'];
  return typeof header === 'string' && /^[+-]?\d{1,9}$/.test(header)
    ? Math.max(Number(header), 0)
    : undefined;
}
