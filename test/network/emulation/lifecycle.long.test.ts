import { type ChildProcess, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { forMakers } from '../support/for-makers.ts';
import { end, familyOf, ifThere, insideOf, UpHome } from '../support/up-process.ts';

const rounds = 25;
const kills = 4;
/** Milliseconds that a round may take on a loaded machine. */
const patience = 60_000;

forMakers('what `servicenet up` leaves behind', (maker) => {
  const homes = [new UpHome(maker), new UpHome(maker)] as const;
  const [home, other] = homes;
  const running = new Set<ChildProcess>();
  let before: HostNetwork;

  beforeEach(() => {
    before = hostNetwork();
  });
  afterEach(async () => {
    for (const process of running) if (isAlive(process)) await end(process, 'SIGKILL');
    running.clear();
    expect(hostNetwork()).toEqual(before);
  });
  afterAll(() => {
    for (const one of homes) one.remove();
  });

  it(`is nothing, ${rounds} times`, { timeout: rounds * patience }, async () => {
    for (let round = 0; round < rounds; round++) {
      const up = await start(home, 3);
      const traces = tracesOf(up);
      expect(hostNetwork(), 'while it runs').toEqual(before);
      expect(await end(up, 'SIGTERM')).toBe(0);
      await expect.poll(() => left(traces)).toEqual([]);
      expect(readdirSync(home.folder).filter((file) => file.startsWith('kubeconfig'))).toEqual([]);
    }
  });

  it(
    `is no process and no namespace when it is killed, ${kills} times`,
    { timeout: kills * patience },
    async () => {
      for (let round = 0; round < kills; round++) {
        const up = await start(home, 3);
        const traces = tracesOf(up);
        await end(up, 'SIGKILL');
        await expect.poll(() => left(traces)).toEqual([]);
      }
    },
  );

  it(
    `is nothing of a network whose process is killed, ${kills} times`,
    { timeout: kills * patience },
    async () => {
      for (let round = 0; round < kills; round++) {
        const up = await start(home, 2);
        const ended = tracesOf(up);
        process.kill(insideOf(up), 'SIGKILL');
        await expect.poll(() => left(ended)).toEqual([]);
        await expect.poll(() => home.run(['--node', 'node-2'], 'true').status).toBe(0);
        const traces = tracesOf(up);
        await end(up, 'SIGTERM');
        await expect.poll(() => left(traces)).toEqual([]);
      }
    },
  );

  it.each(['servicenet run', 'the program'])(
    'is no Pod and no namespace of a program when %s is killed',
    { timeout: patience },
    async (killed) => {
      const up = await start(home, 1);
      const run = home.begin([], 'sleep', '1000');
      running.add(run);
      const program = await programOf(run, 'sleep');
      const traces = { processes: [program], namespaces: [readlinkSync(`/proc/${program}/ns/net`)] };
      process.kill(killed === 'the program' ? Number(program) : (run.pid ?? 0), 'SIGKILL');
      if (isAlive(run)) await once(run, 'exit');
      await expect.poll(() => left(traces)).toEqual([]);
      await expect
        .poll(() => home.run(['--outside'], 'kubectl', 'get', 'pods', '-o', 'name').stdout)
        .toBe('');
      await end(up, 'SIGTERM');
    },
  );

  it('is nothing of one in another that runs beside it', { timeout: 2 * patience }, async () => {
    const [one, two] = await Promise.all([start(home, 1), start(other, 2)]);
    const nodes = (of: UpHome): string =>
      of.run(['--node', 'node-1'], 'kubectl', 'get', 'nodes', '-o', 'name').stdout;
    expect(nodes(home)).toBe('node/node-1\n');
    expect(nodes(other)).toBe('node/node-1\nnode/node-2\n');
    const traces = [tracesOf(one), tracesOf(two)] as const;
    await end(one, 'SIGKILL');
    await expect.poll(() => left(traces[0])).toEqual([]);
    expect(nodes(other)).toBe('node/node-1\nnode/node-2\n');
    await end(two, 'SIGTERM');
    await expect.poll(() => left(traces[1])).toEqual([]);
  });

  async function start(where: UpHome, nodes: number): Promise<ChildProcess> {
    const up = await where.start(['--nodes', String(nodes)]);
    running.add(up);
    return up;
  }
});

function isAlive({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}

/** Everything of this machine's network that a program could change, as `ip` prints it. */
interface HostNetwork {
  readonly routes: string;
  readonly rules: string;
  readonly links: string;
  readonly addresses: string;
  readonly namespaces: readonly string[];
}

function hostNetwork(): HostNetwork {
  const ip = (...args: readonly string[]): string => {
    const { status, stdout, stderr } = spawnSync('ip', args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    // Routes of router advertisements count down.
    return stdout.replaceAll(/ expires \d+sec/g, '');
  };
  return {
    routes: ip('route', 'show', 'table', 'all'),
    rules: ip('rule'),
    links: ip('-o', 'link'),
    addresses: ip('-br', 'address'),
    namespaces: existsSync('/run/netns') ? readdirSync('/run/netns') : [],
  };
}

/** What must be gone after an end: processes by their ids, and namespaces such as `net:[4026532000]`. */
interface Traces {
  readonly processes: readonly string[];
  readonly namespaces: readonly string[];
}

/** Of an `up` that runs: its processes, and their namespaces and those of its nodes that are not this process's. */
function tracesOf(up: ChildProcess): Traces {
  const processes = familyOf(up);
  const own = new Set(namespacesOf('self'));
  const namespaces = new Set(processes.flatMap(namespacesOf).filter((namespace) => !own.has(namespace)));
  for (const namespace of mountedNamespaces(String(insideOf(up)))) namespaces.add(namespace);
  // Net, mount and PID of the process inside, `outside`, and a node at least: otherwise nothing is looked for.
  if (namespaces.size < 5) throw new Error(`only ${[...namespaces].join()}`);
  return { processes, namespaces: [...namespaces] };
}

/**
 * Those that are still there: a process that is not gone, a namespace that a process is in or has mounted. The numbers of
 * namespaces that are gone are those of the next ones, which other tests may make.
 */
function left({ processes, namespaces }: Traces): readonly string[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && !isOfOtherTests(Number(name)));
  const held = new Set(all.flatMap((pid) => [...namespacesOf(pid), ...mountedNamespaces(pid)]));
  return [
    ...processes.filter((pid) => existsSync(`/proc/${pid}`)),
    ...namespaces.filter((namespace) => held.has(namespace)),
  ];
}

/** Whether a process comes from another worker of vitest. What its parent left behind has process 1 as its parent. */
function isOfOtherTests(pid: number): boolean {
  const [status = ''] = ifThere(() => [readFileSync(`/proc/${pid}/status`, 'utf8')]);
  const parent = Number(/^PPid:\s+(\d+)/m.exec(status)?.[1] ?? 0);
  if (pid === process.pid || parent <= 1) return false;
  return parent === process.ppid || isOfOtherTests(parent);
}

function namespacesOf(pid: string): readonly string[] {
  return ['net', 'mnt', 'pid', 'user'].flatMap((kind) =>
    ifThere(() => [readlinkSync(`/proc/${pid}/ns/${kind}`)]),
  );
}

/** `ip netns add` mounts them on files. */
function mountedNamespaces(pid: string): readonly string[] {
  const mounts = ifThere(() => readFileSync(`/proc/${pid}/mountinfo`, 'utf8').split('\n'));
  return mounts.flatMap((line) => line.match(/net:\[\d+\]/) ?? []);
}

/** The process of a program that a process has begun, once it is there. */
async function programOf(begun: ChildProcess, name: string): Promise<string> {
  let found: string | undefined;
  const isIt = (pid: string): boolean =>
    ifThere(() => [readFileSync(`/proc/${pid}/comm`, 'utf8').trim()]).includes(name);
  await expect
    .poll(() => {
      found = ifThere(() => familyOf(begun)).find(isIt);
      return found;
    })
    .toBeDefined();
  return found ?? '';
}
