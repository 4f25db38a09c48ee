import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { Child } from '../e2e/child.ts';
import { call } from '../support/test-server.ts';

const main = new URL('../../src/main.js', import.meta.url).pathname;
const services = '/api/v1/namespaces/default/services';

let home = '';
let server: TestServer;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'servicenet-home-'));
  server = await startApiServer({ controllers: [], nodes: 0 });
  writeFileSync(join(home, 'kubeconfig'), server.kubeconfig);
  writeFileSync(fault(), `process.on('SIGUSR2', () => {\n  throw new Error('provoked');\n});\n`);
  const spec = { selector: { app: 'pay' }, ports: [{ port: 80 }] };
  await call(server.client, 'POST', services, { body: { metadata: { name: 'pay' }, spec } });
});
afterAll(async () => {
  await server.stop();
  rmSync(home, { recursive: true, force: true });
});

/** A module by which a signal provokes an error that nothing catches. */
const fault = (): string => join(home, 'fault.mjs');
const environment = (): Record<string, string> => ({ HOME: home, KUBECONFIG: join(home, 'kubeconfig') });

describe.skipIf(!existsSync('/usr/bin/script'))(
  'top on a terminal of 80 columns (of script, bsdutils)',
  () => {
    /** A terminal that says how it is set before and after, and the process on it. */
    class Terminal {
      readonly #child: Child;

      constructor(options = '') {
        const line = `stty columns 80 rows 24; echo was $(stty -g); sh -c 'echo pid $$; exec ${process.execPath} ${main} top'; echo code $?; echo is $(stty -g)`;
        this.#child = new Child('script', ['-qec', line, '/dev/null'], {
          ...{ ...environment(), TERM: 'xterm', SHELL: '/bin/sh', NODE_OPTIONS: options },
        });
      }

      get output(): string {
        return this.#child.output;
      }

      /** What is drawn. */
      get screen(): readonly string[] {
        const [, drawn = ''] = [...this.output.split('\u001b[?1049h')];
        const last = drawn.split('\u001b[H').at(-1) ?? '';
        return stripVTControlCharacters(last)
          .split('\n')
          .map((line) => line.trimEnd());
      }

      async shows(...words: readonly string[]): Promise<void> {
        await this.#child.until(() => words.every((word) => this.screen.join('\n').includes(word)));
      }

      async press(keys: string, ...words: readonly string[]): Promise<void> {
        this.#child.type(keys);
        await this.shows(...words);
      }

      signal(name: NodeJS.Signals): void {
        process.kill(Number(/pid (\d+)/.exec(this.output)?.[1]), name);
      }

      type(keys: string): void {
        this.#child.type(keys);
      }

      async closed(): Promise<void> {
        await this.#child.closed;
      }
    }

    test('keys lead through lists, a filter and details', async () => {
      const terminal = new Terminal();
      await terminal.shows('default/pay', 'SelectorMatchesNothing', '[1 Services]');
      // Problems are first.
      expect(terminal.screen.find((line) => line.startsWith('>'))).toContain('default/pay');
      await terminal.press('\u001b[B', '>  default/kubernetes');
      await terminal.press('2', '[2 Pods]', 'There are none.');
      await terminal.press('\t', '[3 Nodes]');
      await terminal.press('6', '[6 Problems 1]', 'SelectorMatchesNothing  Service default/pay');
      await terminal.press('1k\r', 'Why no endpoint: SelectorMatchesNothing', '✗ ');
      await terminal.press('\u001b', '>! default/pay');
      await terminal.press('/kube', 'filter: kube_', '1 of 2');
      expect(terminal.screen.join('\n')).not.toContain('default/pay');
      await terminal.press('\r', 'filter: kube');
      await terminal.press('?', 'the end');
      // The way to a Service, from a source that is chosen, is what trace prints.
      await terminal.press('?\u001b1g', '>! default/pay');
      await terminal.press('t', 'the way to svc/default/pay:80, from:', '>  outside');
      await terminal.press('\r', 'trace outside svc/default/pay:80', 'not reachable');
      await terminal.press('\u001b', '>! default/pay');
      await terminal.press('o', 'No page of this cluster is served', 'page');
      await terminal.press('?', 'the end');
      for (const line of terminal.screen) expect(line.length).toBeLessThanOrEqual(80);
      terminal.type('q');
      await terminal.closed();
      expect(terminal.output).toContain('code 0');
    });

    test.each<[string, (terminal: Terminal) => void, string]>([
      ['q', (terminal) => terminal.type('q'), 'code 0'],
      ['Ctrl-C', (terminal) => terminal.type('\u0003'), 'code 0'],
      ['SIGTERM', (terminal) => terminal.signal('SIGTERM'), 'code 0'],
      ['an error', (terminal) => terminal.signal('SIGUSR2'), 'provoked'],
    ])('leaves the terminal as it was, ended by %s', async (_name, end, said) => {
      const terminal = new Terminal(`--import=${fault()}`);
      await terminal.shows('default/pay');
      end(terminal);
      await terminal.closed();
      const { output } = terminal;
      expect(output).toContain(said);
      const left = output.lastIndexOf('\u001b[?25h\u001b[?1049l');
      expect(left).toBeGreaterThan(output.lastIndexOf('\u001b[?1049h'));
      expect(output.slice(left)).not.toContain('default/pay');
      expect(/is (\S+)/.exec(output.slice(left))?.[1]).toBe(/was (\S+)/.exec(output)?.[1]);
    });
  },
);

test('without a terminal, each change is a line', async () => {
  const child = new Child(process.execPath, [main, 'top'], environment());
  const said = async (line: RegExp): Promise<void> => child.until(() => line.test(child.output));
  await said(/^default\/kubernetes {2}ClusterIP {2}10\.96\.0\.1 {2}<none> {2}443\/TCP {2}1\/1 ready$/m);
  const spec = { ports: [{ port: 80 }], clusterIP: '10.96.0.77' };
  await call(server.client, 'POST', services, { body: { metadata: { name: 'new' }, spec } });
  await said(/^default\/new {2}ClusterIP {2}10\.96\.0\.77 {2}<none> {2}80\/TCP {2}0\/0 ready$/m);
  const event = {
    ...{ metadata: { name: 'e' }, type: 'Warning', reason: 'Failed', message: 'it\u001b[31m failed' },
    ...{ firstTimestamp: '2026-01-01T12:34:56Z', lastTimestamp: '2026-01-01T12:34:56Z', count: 1 },
    involvedObject: { kind: 'Service', namespace: 'default', name: 'new' },
  };
  await call(server.client, 'POST', '/api/v1/namespaces/default/events', { body: event });
  await said(/^12:34:56 {2}Service default\/new {2}Failed {2}it failed$/m);
  await call(server.client, 'DELETE', `${services}/new`);
  await said(/^default\/new {2}deleted$/m);
  await child.end();
  expect(child.code).toBe(0);
  expect(child.output).not.toContain('\u001b');
});
