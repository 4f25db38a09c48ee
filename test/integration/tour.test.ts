import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { Kubectl } from '../support/kubectl.ts';
import { comparableLines, networkSections, tourSteps } from '../support/pages.ts';
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

/** How many Pods are evicted depends on where the last rollout put them. */
function comparable(output: string): string[] {
  return [...new Set(comparableLines(output))].sort();
}

test('docs/tour.md prints what it says it prints', async () => {
  const all = [...tourSteps()].flatMap(([title, steps]) => (networkSections.includes(title) ? [] : steps));
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
