import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { comparableLines, networkSections, tourSteps } from '../support/pages.ts';
import { missingFor } from './support/gate.ts';
import { end, UpHome } from './support/up-process.ts';

const maker = process.getuid?.() === 0 ? 'root' : 'user';
const missing = missingFor(maker);
const main = join(import.meta.dirname, '../../src/main.js');

describe.skipIf(missing !== '')(`docs/tour.md${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  const home = new UpHome(maker);
  let up: Awaited<ReturnType<UpHome['start']>>;

  beforeAll(async () => {
    const servicenet = join(home.folder, 'servicenet');
    writeFileSync(servicenet, `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`);
    chmodSync(servicenet, 0o755);
    up = await home.start(['--default-pool', '192.0.2.0/24']);
  });
  afterAll(async () => {
    await end(up, 'SIGTERM');
    home.remove();
  });

  /** What a command prints in a shell. */
  function printed(command: string): string {
    const PATH = `${home.folder}:${process.env['PATH'] ?? ''}`;
    const { stdout, stderr } = spawnSync('sh', ['-c', command], {
      encoding: 'utf8',
      env: { ...home.environment, PATH },
    });
    return `${stdout}${stderr}`;
  }

  it('prints what it says it prints of real traffic', { timeout: 480_000 }, async () => {
    const [, before = []] = [...tourSteps()][0] ?? [];
    const traffic = networkSections.flatMap((title) => tourSteps().get(title) ?? []);
    expect(traffic.length).toBeGreaterThanOrEqual(25);
    for (const { command, output } of [...before, ...traffic]) {
      // A lost request is lost. All else that was asked for a moment ago may need one: a person would ask again.
      const isOnce =
        !/^(?:kubectl get|servicenet (?:run|trace))/.test(command) || command.includes('%{http_code}');
      const deadline = Date.now() + 60_000;
      for (;;) {
        const found = comparableLines(printed(command));
        const wanted = comparableLines(output);
        if (!isOnce && Date.now() < deadline && found.join('\n') !== wanted.join('\n')) {
          await sleep(100);
          continue;
        }
        expect(found, command).toEqual(wanted);
        break;
      }
    }
  });
});
