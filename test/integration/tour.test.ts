import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { Kubectl } from '../support/kubectl.ts';
import { itemsOf, untilObject } from '../support/with-controllers.ts';

let server: TestServer;
let kubectl: Kubectl;

beforeAll(async () => {
  server = await startApiServer({ nodes: 3, addressPools: ['192.0.2.0/24'] });
  kubectl = new Kubectl(server.kubeconfig);
  await untilObject(
    server.client,
    '/api/v1/nodes',
    (body) => itemsOf(body).filter((node) => JSON.stringify(node).includes('"KubeletReady"')).length === 3,
  );
});
afterAll(async () => {
  kubectl.dispose();
  await server.stop();
});

interface Step {
  readonly command: string;
  readonly output: string;
}

/** The commands of docs/tour.md and what they print. */
function steps(): Step[] {
  const page = readFileSync(new URL('../../docs/tour.md', import.meta.url), 'utf8');
  const blocks = [...page.matchAll(/^```console\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
  return blocks.flatMap((block) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((step) => {
        const [command = '', ...lines] = step.split('\n');
        return { command, output: lines.join('\n') };
      }),
  );
}

/** What is the same in every run: addresses, generated names, node ports, ages and widths are not. */
function comparable(output: string): string[] {
  const lines = output
    .split('\n')
    .map((line) =>
      line
        .replace(/\b10\.244\.(\d+)\.\d+/g, '10.244.$1.x')
        .replace(/\b10\.96\.\d+\.\d+/g, '10.96.x.x')
        .replace(/\bweb-[a-z0-9]{5,10}-[a-z0-9]{5}\b/g, 'web-pod')
        .replace(/\bweb-[a-z0-9]{5}\b/g, 'web-slice')
        .replace(/\b80:\d+\/TCP/g, '80:port/TCP')
        .replace(/\b(?:\d+[hm])?\d+[smh]\b/g, 'age')
        .replace(/10\.244\.\d\.x(?:,10\.244\.\d\.x)+/g, (list) => list.split(',').sort().join())
        .replace(/\s+/g, ' ')
        .trim(),
    )
    .filter((line) => line !== '');
  // How many Pods are evicted depends on where the last rollout put them.
  return [...new Set(lines)].sort();
}

test('docs/tour.md prints what it says it prints', async () => {
  const all = steps();
  expect(all.length).toBeGreaterThanOrEqual(10);
  for (const { command, output } of all) {
    const [program, ...args] = command.split(' ');
    expect(program).toBe('kubectl');
    const isRead = args[0] === 'get';
    // What was asked for a moment ago may need a moment: a person would ask again.
    const deadline = Date.now() + 60_000;
    for (;;) {
      const printed = comparable(await kubectl.ok(args));
      if (isRead && Date.now() < deadline && printed.join() !== comparable(output).join()) {
        await sleep(50);
        continue;
      }
      expect(printed, command).toEqual(comparable(output));
      break;
    }
  }
});
