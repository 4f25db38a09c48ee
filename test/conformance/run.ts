/**
 * Replays the recorded answers and shows what differs.
 *
 *     node test/conformance/run.ts [--file service-create] [--case name] [--cluster v4] [-v]
 *     node test/conformance/run.ts --url https://127.0.0.1:6443 --token T --cluster v4
 *
 * Without --url it starts our embedded server in this process, once for each cluster that the chosen cases need.
 */
import { parseArgs } from 'node:util';
import { startCluster } from './clusters.ts';
import type { ServerAddress } from './connection.ts';
import { failureText, scoreTable } from './report.ts';
import { runSuite, type Verdict } from './suite.ts';
import { readTranscript, transcriptFiles } from './transcript.ts';

const { values } = parseArgs({
  options: {
    file: { type: 'string', multiple: true, short: 'f' },
    case: { type: 'string', multiple: true, short: 'c' },
    cluster: { type: 'string' },
    url: { type: 'string' },
    token: { type: 'string', default: '' },
    concurrency: { type: 'string', default: '12' },
    'no-retry': { type: 'boolean', default: false },
    order: { type: 'boolean', default: false },
    quiet: { type: 'boolean', short: 'q', default: false },
    json: { type: 'boolean', default: false },
    verbose: { type: 'boolean', short: 'v', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

const helpText = `Replays test/conformance/transcripts and shows the first differing step of each case.

  -f, --file NAME     only this file (service-create, …); may be repeated
  -c, --case TEXT     only cases whose name contains TEXT; may be repeated
      --cluster NAME  only cases of v4, v6, dual46 or dual64
      --url URL --token T   a running server instead of our own in this process (with --cluster)
      --concurrency N cases at a time (12)
      --no-retry      do not run failed cases once more, alone
      --order         the order of members in bodies counts too
  -q, --quiet         the score only
      --json          the score and the failures as JSON
  -v, --verbose       name passed cases too, and show every difference`;

async function main(): Promise<number> {
  if (values.help) {
    console.log(helpText);
    return 0;
  }
  const chosen = (values.file ?? transcriptFiles()).flatMap((file) =>
    readTranscript(file)
      .filter(({ name }) => values.case === undefined || values.case.some((part) => name.includes(part)))
      .filter(({ cluster }) => values.cluster === undefined || cluster === values.cluster)
      .map((test) => ({ file, test })),
  );
  const verdicts: Verdict[] = [];
  for (const cluster of ['v4', 'v6', 'dual46', 'dual64'] as const) {
    const cases = chosen.filter(({ test }) => test.cluster === cluster);
    if (cases.length === 0) continue;
    const own = values.url === undefined ? await startCluster(cluster) : undefined;
    const server: ServerAddress = own ?? { url: values.url ?? '', token: values.token };
    try {
      verdicts.push(
        ...(await runSuite(cases, server, {
          concurrency: Number(values.concurrency),
          retry: !values['no-retry'],
          order: values.order,
          keepNamespaces: own !== undefined,
          onVerdict: show,
        })),
      );
    } finally {
      await own?.stop();
    }
  }
  const failed = verdicts.filter(({ failure }) => failure !== undefined);
  if (values.json) {
    console.log(
      JSON.stringify(failed.map(({ file, test, failure }) => ({ file, case: test.name, ...failure }))),
    );
  } else console.log(scoreTable(verdicts));
  return failed.length === 0 ? 0 : 1;
}

function show(verdict: Verdict): void {
  if (values.quiet || values.json) return;
  if (verdict.failure !== undefined) console.log(`${failureText(verdict, values.verbose ? Infinity : 8)}\n`);
  else if (values.verbose) console.log(`✓ ${verdict.file} / ${verdict.test.name}`);
}

process.exitCode = await main();
