import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import { createTransport } from '../../src/client/connect.ts';
import type { Transport } from '../../src/client/transport.ts';
import { runControllers, type RunOptions } from '../../src/controllers/run.ts';
import { FakeClock } from './fake-clock.ts';
import { type Exchange, ScriptedServer } from './scripted-server.ts';

/** Controllers against a server whose every answer a test decides. */
export interface ScriptedRun {
  /** Theirs. */
  readonly clock: FakeClock;
  /** The log lines of the level that was asked for, and above. */
  readonly problems: readonly string[];
}

/** Runs controllers, without randomness, until the test is over. */
export async function runAgainst(
  server: { answer(exchange: Exchange): void },
  level: 'warn' | 'error',
  chosen: (transport: Transport) => Pick<RunOptions, 'controllers'>,
): Promise<ScriptedRun> {
  const scripted = await ScriptedServer.start();
  const transport = await createTransport({ kind: 'endpoint', url: scripted.url });
  const stop = new AbortController();
  const serving = scripted.serve((exchange) => server.answer(exchange), stop.signal);
  const clock = new FakeClock();
  const problems: string[] = [];
  const running = runControllers({
    transport,
    ...chosen(transport),
    log: pino({ level }, { write: (line: string) => problems.push(line) }),
    clock,
    random: () => 0,
  });
  onTestFinished(async () => {
    await running.stop();
    await transport.close();
    stop.abort();
    await serving;
    await scripted.close();
  });
  return { clock, problems };
}
