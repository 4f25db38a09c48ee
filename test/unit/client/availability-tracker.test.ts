import { describe, expect, test } from 'vitest';
import { AvailabilityTracker } from '../../../src/client/availability-tracker.ts';
import { type ApiResponse, ConnectionError, type Transport } from '../../../src/client/transport.ts';
import { notFound, unauthorized } from '../../../src/objects/status.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const answer: ApiResponse = { status: 200, headers: {}, bytes: Buffer.from('{}'), json: () => ({}) };

/** A server that does what `next` says, and the log of its client. */
class Asked {
  next: Error | undefined;
  readonly clock = new FakeClock();
  readonly lines: string[] = [];
  readonly problems: (string | undefined)[] = [];
  readonly #watch: AvailabilityTracker;

  constructor() {
    const reply = <R>(result: R): Promise<R> =>
      this.next === undefined ? Promise.resolve(result) : Promise.reject(this.next);
    const transport: Transport = {
      server: 'https://api',
      request: () => reply(answer),
      stream: () => reply({ headers: {}, chunks: (async function* () {})() }),
      close: () => Promise.resolve(),
    };
    const destination = { write: (line: string) => this.lines.push(line) };
    const log = createLog({ level: 'info', format: 'json', destination });
    this.#watch = new AvailabilityTracker(transport, log, this.clock, (problem) =>
      this.problems.push(problem),
    );
  }

  async ask(error?: Error, timeoutMs?: number): Promise<void> {
    this.next = error;
    const options = timeoutMs === undefined ? {} : { timeoutMs };
    const asking = [
      this.#watch.request('GET', '/api/v1/services', options),
      this.#watch.stream('/api/v1/pods'),
    ];
    const results = await Promise.allSettled(asking);
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toBe(error);
      else expect(error).toBeUndefined();
    }
  }

  entries(): unknown[] {
    return this.lines.splice(0).map((line): unknown => JSON.parse(line));
  }
}

const refused = new ConnectionError('ECONNREFUSED', 'GET https://api: connect ECONNREFUSED');

describe('an API server that does not answer in time', () => {
  const late = new ConnectionError('TIMEOUT', 'PATCH https://api: no answer in time');

  test('is busy, where a short request gives up and the next one is answered', async () => {
    const asked = new Asked();
    for (let i = 0; i < 20; i++) {
      await asked.ask(late, 900);
      await asked.clock.advance(1000);
      await asked.ask();
    }
    expect([asked.entries(), asked.problems]).toEqual([[], []]);
  });

  test('is logged once short requests have had no answer for five seconds, and long ones at once', async () => {
    const short = new Asked();
    for (let i = 0; i < 4; i++) {
      await short.ask(late, 900);
      await short.clock.advance(1000);
    }
    expect(short.entries()).toEqual([]);
    await short.clock.advance(1000);
    await short.ask(late, 900);
    expect(short.entries()).toMatchObject([{ level: 'error', reason: 'TIMEOUT' }]);
    await short.ask();
    expect(short.entries()).toMatchObject([{ msg: 'the API server answers again' }]);
    const long = new Asked();
    await long.ask(late);
    expect(long.entries()).toMatchObject([{ level: 'error', reason: 'TIMEOUT' }]);
  });
});

describe('an API server that cannot be reached', () => {
  test('is logged once a minute, and when it answers again', async () => {
    const asked = new Asked();
    for (let i = 0; i < 12; i++) {
      await asked.ask(refused);
      await asked.clock.advance(10_000);
    }
    await asked.ask();
    await asked.ask();
    const common = { level: 'error', server: 'https://api', reason: 'ECONNREFUSED', detail: refused.message };
    expect(asked.entries()).toEqual([
      expect.objectContaining({ ...common, seconds: 0 }),
      expect.objectContaining({ ...common, seconds: 60 }),
      expect.objectContaining({ level: 'info', seconds: 120, msg: 'the API server answers again' }),
    ]);
  });

  test('and comes and goes says so no more than once a minute', async () => {
    const asked = new Asked();
    for (let i = 0; i < 30; i++) {
      await asked.ask(refused);
      await asked.ask();
      await asked.clock.advance(1000);
    }
    expect(asked.entries()).toHaveLength(2);
  });

  test('is shown at once, and its end', async () => {
    const asked = new Asked();
    for (const error of [undefined, refused, refused, unauthorized(), undefined, refused])
      await asked.ask(error);
    expect(asked.problems).toEqual([
      expect.stringContaining('check that it runs'),
      expect.stringContaining('renew'),
      undefined,
      expect.stringContaining('check that it runs'),
    ]);
  });

  test('is not missed while it is stopped, or where it answers with another error', async () => {
    const asked = new Asked();
    await asked.ask(new ConnectionError('ABORTED', 'stopped'));
    await asked.ask(new ConnectionError('CLOSED', 'the transport is closed'));
    await asked.ask(notFound({ group: '', resource: 'services' }, 'x'));
    expect(asked.entries()).toEqual([]);
    await asked.ask(refused);
    await asked.ask(notFound({ group: '', resource: 'services' }, 'x'));
    expect(asked.entries()).toMatchObject([{ reason: 'ECONNREFUSED' }, { level: 'info' }]);
  });

  test.each([
    [new ConnectionError('ECONNREFUSED', ''), 'check that it runs'],
    [new ConnectionError('TIMEOUT', ''), 'firewalls'],
    [new ConnectionError('ENOTFOUND', ''), 'DNS'],
    [new ConnectionError('UNABLE_TO_VERIFY_LEAF_SIGNATURE', ''), '--certificate-authority'],
    [new ConnectionError('CERT_HAS_EXPIRED', ''), 'renew it'],
    [new ConnectionError('ERR_TLS_CERT_ALTNAME_INVALID', ''), 'tls-server-name'],
    [new ConnectionError('CREDENTIALS', ''), 'exec plugin'],
    [new ConnectionError('ECONNRESET', ''), 'what is in between'],
    [unauthorized(), 'renew the token or certificate'],
  ])('because of %o comes with advice', async (error, advice) => {
    const asked = new Asked();
    await asked.ask(error);
    expect(asked.entries()).toMatchObject([{ msg: expect.stringContaining(advice) as unknown }]);
  });
});
