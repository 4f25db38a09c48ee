import { afterAll, describe, expect, test } from 'vitest';
import levels from './levels.json' with { type: 'json' };
import { startCluster } from './clusters.ts';
import { failureText, scores, scoreTable } from './report.ts';
import { runSuite, type Verdict } from './suite.ts';
import { readTranscript, transcriptFiles } from './transcript.ts';

/** Passing cases by file, from each of the four clusters; no file may fall below its level in levels.json. */
describe('recorded answers of kube-apiserver 1.37', () => {
  const verdicts: Verdict[] = [];
  const all = transcriptFiles().flatMap((file) => readTranscript(file).map((test) => ({ file, test })));

  test.each(['v4', 'v6', 'dual46', 'dual64'] as const)(
    'replays against a server started as %s',
    async (cluster) => {
      const server = await startCluster(cluster);
      try {
        const cases = all.filter(({ test }) => test.cluster === cluster);
        const ran = await runSuite(cases, server, { keepNamespaces: true });
        expect(ran.length).toBe(cases.length);
        verdicts.push(...ran);
      } finally {
        await server.stop();
      }
    },
    600_000,
  );

  test.each(Object.entries(levels))('%s passes at least %d cases', (file, level) => {
    const score = scores(verdicts).find((candidate) => candidate.file === file);
    const failures = verdicts.filter((verdict) => verdict.file === file && verdict.failure !== undefined);
    expect(
      score?.passed ?? 0,
      failures.map((verdict) => failureText(verdict, 4)).join('\n\n'),
    ).toBeGreaterThanOrEqual(level);
  });

  test('every file has a level', () => {
    expect(Object.keys(levels).sort()).toEqual(transcriptFiles());
  });

  afterAll(() => console.log(scoreTable(verdicts)));
});
