import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

/** Packets and the simulation have times of their own: neighbours, routers and kernels wait as long as they do. */
const rooms = ['unit', 'contract', 'conformance', 'integration', 'e2e', 'package'];
const files = rooms.flatMap((room) =>
  readdirSync(join('test', room), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && !name.endsWith('.long.test.ts'))
    .map((name) => `${room}/${name}`),
);

/**
 * The lines of all tests that judge by a time, as `file: line`, but for those of files that may; and the files that may
 * without need.
 */
function found(isTime: (line: string) => boolean, allowed: Readonly<Record<string, string>>): string[] {
  const lines = files
    .filter((file) => file !== 'unit/hack/waits.test.ts')
    .flatMap((file) =>
      readFileSync(join('test', file), 'utf8')
        .split('\n')
        .filter(isTime)
        .map((line) => ({ file, line: line.trim() })),
    );
  const wrong = lines.filter(({ file }) => !(file in allowed)).map(({ file, line }) => `${file}: ${line}`);
  const idle = Object.keys(allowed).filter((name) => lines.every(({ file }) => file !== name));
  return [...wrong, ...idle.map((file) => `${file}: needs no exception`)];
}

describe('tests', () => {
  // What lasts shorter only asks again: how often does not decide about the result.
  test('wait for what they need, not for a time', () => {
    const fixed = /\bawait (?:sleep|delay)\(\d{3,}|\bsetTimeout\(\w+, \d{3,}/;
    const allowed = {
      'integration/deploy-process.test.ts': 'asks again',
      'integration/http2.test.ts': 'looks again whether a number still changes; a watch that is silent',
      'integration/load-balancer-handover.test.ts': 'nothing tells that a queue is empty',
      'integration/workloads-nodes.test.ts': 'looks again whether anything was written',
      'unit/emulation/kubelet-api/slow-clients.test.ts': 'looks again whether a number still changes',
      'unit/host/unused-memory.test.ts': 'shows that nothing is given back by itself',
    };
    expect(found((line) => fixed.test(line), allowed)).toEqual([]);
  });

  test('take times of the reference machine (support/reference-time.ts), but for deadlines', () => {
    const measured = /\b(?:performance\.now|Date\.now)\(\)|\b(?:cpuUsage|threadCpuUsage|hrtime)\b/;
    // The moment at which a wait is given up, the time of an object, and the start of a fake clock judge nothing.
    const judgesNothing =
      /\b(?:deadline|end|until)\b|Timestamp|Time:|stamp\(|MicroTime\(|new FakeClock\(|new Date\(/;
    const allowed = {
      'integration/deletions.test.ts': 'a grace period is over at a time of the clock',
      'integration/load-balancer-other-writers.test.ts': 'at least, not at most',
      'integration/router-restrictions.test.ts': 'at least, not at most',
      'integration/workloads-nodes.test.ts': 'at least, not at most',
      'unit/host/unused-memory.test.ts': 'works as long as the rule wants',
      'unit/telemetry/process-metrics.test.ts': 'at least, not at most',
      'unit/apiserver/discovery/openapi/documents.test.ts': 'how many days an answer may be kept',
    };
    expect(found((line) => measured.test(line) && !judgesNothing.test(line), allowed)).toEqual([]);
  });
});
