import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { runProgram } from '../../src/commands/run.ts';
import { Child } from '../e2e/child.ts';
import { commandLine } from '../support/command-line.ts';

const main = new URL('../../src/main.js', import.meta.url).pathname;
/** Without what is not asked for here: no nodes, no controllers, no network. */
const bare = ['up', '--nodes', '0', '--controllers=', '--network', 'off'];
let home = '';
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'servicenet-home-'));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

interface Ended {
  readonly output: string;
  readonly code: number | null;
}

/** Runs servicenet with a home of its own, to its end. */
async function servicenet(...args: string[]): Promise<Ended> {
  const child = begin(args);
  await child.closed;
  return { output: child.output, code: child.code };
}

function begin(args: readonly string[], environment: Readonly<Record<string, string>> = {}): Child {
  return new Child(process.execPath, [main, ...args], { HOME: home, KUBECONFIG: '', ...environment });
}

test('npm, which started up, passes a signal on to it', async () => {
  const kubeconfig = join(home, 'by-npm');
  const own = ['--port', '0', '--write-kubeconfig', kubeconfig];
  const npm = new Child('npm', ['run', '-s', 'servicenet', '--', ...bare, ...own], { HOME: home });
  await npm.until(() => npm.output.includes('servicenet is ready'));
  expect(existsSync(kubeconfig)).toBe(true);
  await npm.end();
  expect(existsSync(kubeconfig)).toBe(false);
});

describe('servicenet up -- program', () => {
  test('runs it with KUBECONFIG, beside others, and leaves nothing behind', async () => {
    const services = ['get', 'services', '--all-namespaces', '-o', 'name'];
    const hosts = ['--extra-hosts', '192.0.2.7,cluster.example.com'];
    const runs = await Promise.all([
      servicenet('up', '--nodes', '0', '--', 'kubectl', ...services),
      servicenet(...bare, ...hosts, '--', 'kubectl', '--tls-server-name', 'cluster.example.com', ...services),
    ]);
    // Nothing else is printed: what reads the output gets the program's.
    expect(runs).toEqual(Array.from({ length: 2 }, () => ({ output: 'service/kubernetes\n', code: 0 })));
    expect(readdirSync(join(home, '.servicenet'))).toEqual([]);
  });

  test('prints no warning for the Pods of a namespace that is deleted', async () => {
    const script = [
      'exec >/dev/null',
      'kubectl create namespace busy && kubectl -n busy create deployment web --image=nginx --replicas=10',
      'kubectl -n busy rollout status deployment web --timeout=90s && kubectl delete namespace busy',
    ].join('; ');
    const up = ['up', '--nodes', '1', '--network', 'off'];
    expect(await servicenet(...up, '--', 'sh', '-c', script)).toEqual({ output: '', code: 0 });
  });

  test.each([
    [['sh', '-c', 'exit 7'], 7, ''],
    [['sh', '-c', 'kill -9 $$'], 137, ''],
    // As shells end where there is no such program.
    [['no-such-program'], 127, 'servicenet: cannot run no-such-program: spawn no-such-program ENOENT\n'],
  ])('ends as %j ends', async (program, code, errors) => {
    const never = new Promise<never>(() => undefined);
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    const ended = await runProgram({ program, kubeconfig: '', interrupted: never, failure: never });
    const lines = written.mock.calls.map(([text]) => String(text)).join('');
    written.mockRestore();
    expect([ended, lines]).toEqual([code, errors]);
  });

  test('passes a signal on, and ends with what the program makes of it', async () => {
    const script = 'trap "echo stopped; exit 3" TERM; echo begun; while :; do sleep 0.1; done';
    const child = begin([...bare, '--', 'sh', '-c', script]);
    await child.until(() => child.output.includes('begun'));
    await child.end('SIGTERM');
    expect(child.output).toBe('begun\nstopped\n');
    expect(child.code).toBe(3);
  });
});

describe.skipIf(!existsSync('/usr/bin/script'))('on a terminal (of script, bsdutils)', () => {
  const command = [process.execPath, main, ...bare, '--port', '0'].join(' ');
  // A shell that stays, as dash does unless told, ends by the Ctrl-C itself.
  const onTerminal = (line: string, term: string): Child =>
    new Child('script', ['-qefc', `exec ${line}`, '/dev/null'], {
      ...{ HOME: home, KUBECONFIG: '', TERM: term, SHELL: '/bin/sh' },
    });
  const screen = '\u001b[?1049h';

  test('q ends up, and nothing that is to be copied is cut', async () => {
    const file = join(home, 'a'.repeat(90));
    const child = onTerminal(`${command} --write-kubeconfig ${file}`, 'xterm');
    await child.until(() => child.output.includes('(q stops it)'));
    // A key that comes before the screen is there is typed, and read by it.
    child.type('q');
    await child.closed;
    expect(child.code).toBe(0);
    expect(child.output).not.toContain('^C');
    const [, drawn = ''] = child.output.split(screen);
    expect(drawn).toContain(`export KUBECONFIG=${file}`);
  }, 60_000);

  test('Ctrl-Z stops up with the terminal as it was, and fg shows the view again', async () => {
    const child = onTerminal(`bash --norc -ic '${command}; echo was stopped; fg'`, 'xterm');
    await child.until(() => child.output.includes(screen));
    child.type('\u001a');
    await child.until(() => child.output.includes('was stopped'));
    const [before = '', ...after] = child.output.split('was stopped');
    expect(before.lastIndexOf('\u001b[?1049l')).toBeGreaterThan(before.lastIndexOf(screen));
    await child.until(() => child.output.split('was stopped').at(-1)?.includes(screen) === true);
    expect(after.length).toBeGreaterThan(0);
    child.type('q');
    await child.closed;
    expect(child.code).toBe(0);
  }, 60_000);

  test('TERM=dumb gets lines', async () => {
    const child = onTerminal(command, 'dumb');
    await child.until(() => child.output.includes('default/kubernetes  ClusterIP'));
    child.type('\u0003');
    await child.closed;
    expect(child.code).toBe(0);
    expect(child.output).not.toContain('\u001b');
  }, 60_000);
});

describe('a command line that cannot be carried out', () => {
  test.each<[string, string[]]>([
    ['--port', ['--port', 'PORT']],
    ['--metrics-bind-address', ['--port', '0', '--metrics-bind-address', '127.0.0.1:PORT']],
  ])('a port in use names the flag of another one: %s', async (flag, flags) => {
    const other = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const address = other.address();
    const port = typeof address === 'object' ? String(address?.port) : '';
    const file = join(home, 'kubeconfig-of-a-port');
    const own = flags.map((word) => word.replace('PORT', port));
    const { errors, code } = await commandLine(...bare, ...own, '--write-kubeconfig', file);
    other.close();
    expect(errors).toBe(
      `servicenet: port ${port} of 127.0.0.1 is in use: stop the process that listens there, or choose another port with ${flag}\n`,
    );
    expect(code).toBe(1);
  });

  test.each<[string, string[], string]>([
    ['an unknown flag', ['audit', '--bogus'], "error: unknown option '--bogus'"],
    ['a wrong value', ['audit', '--server', 'here'], 'servicenet: --server: must be a URL'],
    ['an unknown source', ['import', 'calico'], 'Allowed choices are metallb, cilium, kube-vip, ingress.'],
    // 1 would mean that something was found.
    ['no kubeconfig', ['audit', '--kubeconfig', '/no/file'], 'cannot read the kubeconfig /no/file: ENOENT'],
    ['nothing to plan', ['pools', 'plan'], '--filename: give a file'],
  ])('%s is 2', async (_, args, message) => {
    const { errors, code } = await commandLine(...args);
    expect(errors).toContain(message);
    expect(code).toBe(2);
  });

  test('is the exit code of the process too', async () => {
    const { output, code } = await servicenet('audit', '--bogus');
    expect(output).toContain("error: unknown option '--bogus'");
    expect(code).toBe(2);
  });

  test('says which contexts there are', async () => {
    const file = join(home, 'two-contexts');
    const context = (name: string): string => `{ name: ${name}, context: { cluster: here, user: me } }`;
    writeFileSync(file, `{ kind: Config, contexts: [${context('one')}, ${context('two')}] }`);
    const asked = async (name: string): Promise<string> =>
      (await commandLine('pools', '--kubeconfig', file, '--context', name)).errors;
    expect(await asked('three')).toBe(
      'servicenet: the kubeconfig has no context "three"; its contexts are one, two (--context)\n',
    );
    expect(await asked('two')).toContain('the context "two" of the kubeconfig names no cluster');
  });

  test('an old Node.js is named, whatever its parser knows', async () => {
    const old = `Object.defineProperty(process.versions, 'node', { value: '22.18.0' });`;
    const child = new Child(process.execPath, [
      '--import',
      `data:text/javascript,${encodeURIComponent(old)}`,
      main,
      'version',
    ]);
    await child.closed;
    expect(child.output).toContain('servicenet needs Node.js 22.19 or newer');
    expect(child.code).toBe(1);
  });
});
