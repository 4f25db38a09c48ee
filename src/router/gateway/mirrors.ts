import { PassThrough } from 'node:stream';
import type { Clock } from '../../client/clock.ts';
import type { MirrorFilter } from '../../network/gateway/plan.ts';
import type { BackendConnections, TargetChoice } from '../backends.ts';
import type { AnswerHandler, BackendExchange, BackendRequest, BodyCopy } from '../http/exchange.ts';
import type { RouterMetrics } from '../router-metrics.ts';

export interface MirrorOptions {
  readonly choice: TargetChoice;
  readonly connections: BackendConnections;
  readonly clock: Clock;
  readonly metrics: RouterMetrics;
}

/** Mirrored requests of all clients at a time; others are not mirrored. */
const maxRunning = 500;
/** Bytes of a body that wait for a backend which is slower than the one that answers. */
const maxWaiting = 256 * 1024;

/** Copies of requests to further backends. Their answers are of no interest, and no client waits for them. */
export class Mirrors {
  readonly #options: MirrorOptions;
  #running = 0;

  constructor(options: MirrorOptions) {
    this.#options = options;
  }

  /** Sends a request to one endpoint of each filter's Service. @returns what gets its body. */
  send(filters: readonly MirrorFilter[], request: BackendRequest): readonly BodyCopy[] {
    return filters.flatMap((filter) => this.#send(filter, request) ?? []);
  }

  #send({ rule }: MirrorFilter, request: BackendRequest): BodyCopy | undefined {
    const { choice, connections, clock, metrics } = this.#options;
    const fail = (): void => metrics.problems.inc({ reason: 'MirrorFailed' });
    const target = rule === undefined ? 'NoService' : choice.choose(rule);
    if (typeof target === 'string' || this.#running >= maxRunning) {
      fail();
      return undefined;
    }
    // The end of the copy reports no error: an abort destroys it.
    const body = request.body === undefined ? undefined : new PassThrough({ highWaterMark: maxWaiting });
    body?.on('error', () => undefined);
    let sent: BackendExchange | undefined;
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      this.#running--;
      late.cancel();
      body?.destroy();
    };
    const abort = (): void => {
      if (isOver) return;
      sent?.abort();
      over();
      fail();
    };
    const late = clock.after(request.timeoutMs, abort);
    this.#running++;
    try {
      const copied = { ...request, body, expectsContinue: false, upgrade: undefined };
      const handler = ignoringAnswer(over, () => {
        over();
        fail();
      });
      sent = connections.send(target, { ...copied, headers: withoutExpect(request.headers) }, handler);
    } catch {
      over();
      fail();
      return undefined;
    }
    if (body === undefined) return undefined;
    return {
      write: (chunk) => {
        if (!isOver && !body.write(chunk)) abort();
      },
      end: (isWhole) => {
        if (isWhole) body.end();
        else if (!body.writableEnded) abort();
      },
    };
  }
}

function ignoringAnswer(onEnd: () => void, onError: () => void): AnswerHandler {
  return {
    ...{ onSent: () => undefined, onInformation: () => undefined, onHead: () => undefined },
    ...{ onData: () => true, onEnd, onError },
    onUpgrade: (_head, socket) => {
      socket.destroy();
      onError();
    },
  };
}

function withoutExpect(headers: readonly string[]): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (name.toLowerCase() !== 'expect') kept.push(name, headers[i + 1] ?? '');
  }
  return kept;
}
