import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { listAt, recordAt } from '../../../src/objects/json.ts';
import { BuiltInServers, programsProcess, servers } from '../support/built-in-servers.ts';
import { makers } from '../support/gate.ts';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';
import { Sandbox } from '../support/sandbox.ts';
import { insideOf } from '../support/up-process.ts';

describePods('Built-in programs', () => {
  let pods: PodNetwork;
  let built: BuiltInServers;

  beforeAll(async () => {
    pods = await PodNetwork.start({ nodes: 1 });
    built = await BuiltInServers.create(pods);
  });
  afterAll(() => pods.server.stop());

  it('are in a process of their own: where it is killed, their containers start again, and nothing else does', async () => {
    const inside = insideOf(process);
    const pid = programsProcess();
    if (pid === undefined) throw new Error('there is no process of built-in programs');
    process.kill(pid, 'SIGKILL');
    for (const name of Object.keys(servers)) {
      const status = await until(
        () => built.statusOf(name),
        (now) => now?.restartCount === 1 && now.state?.running !== undefined,
      );
      expect(status?.lastState?.terminated).toMatchObject({
        exitCode: 137,
        reason: 'Error',
      });
    }
    await built.answer();
    expect(insideOf(process)).toBe(inside);
    expect(programsProcess()).not.toBe(pid);
  });
});

it.for(makers)(
  'that throw end their own container alone, in namespaces of $maker',
  async ({ maker, missing }, { skip }) => {
    skip(missing !== '', `missing: ${missing}`);
    const sandbox = await Sandbox.open(maker);
    try {
      await sandbox.script(['ip netns add machine', 'ip -n machine link set lo up']);
      const [program = '', ...args] = sandbox.enter();
      const there = ['sh', '-c', 'cd "$0" && exec "$@"', process.cwd()];
      const file = fileURLToPath(new URL('../support/throwing-programs.ts', import.meta.url));
      const { stdout, stderr } = spawnSync(program, [...args, ...there, process.execPath, file], {
        encoding: 'utf8',
      });
      expect(stderr).toBe('');
      const { results, honest } = recordAt(JSON.parse(stdout));
      expect(honest).toBe('GET');
      expect(results).toHaveLength(8);
      for (const result of listAt(results)) {
        expect(result).toMatchObject({
          exitCode: 2,
          said: true,
          after: 'ECONNREFUSED',
        });
      }
    } finally {
      await sandbox.close();
    }
  },
);
