import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { isKubeObject, pods as podsResource } from '../../src/client/resources.ts';
import { auditClusterAttachments } from '../../src/controllers/index.ts';
import { networkStatusOf } from '../../src/network/attachments/network-status.ts';
import { networksAnnotation } from '../../src/network/attachments/selection.ts';
import { isRecord } from '../../src/objects/json.ts';
import { keyOf } from '../../src/objects/key.ts';
import type { KubeObject } from '../../src/objects/meta.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

/** How often a controller is killed. */
const kills = Number(process.env['SERVICENET_ATTACHMENT_KILLS'] ?? 2);
const main = fileURLToPath(new URL('../../src/main.js', import.meta.url));
const pods = '/api/v1/namespaces/default/pods';
const pools = '/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/ippools';

/** Two ranges that have 30 addresses in common. */
const ranges = { wide: '10.70.0.0/26', narrow: '10.70.0.0/27' };

/** Who was given which address, in the order in which the server stored it. */
class Ledger {
  readonly problems: string[] = [];
  /** How many addresses were given. */
  given = 0;
  /** By address: the Pod's uid. */
  readonly #holders = new Map<string, string>();
  readonly #heldBy = new Map<string, readonly string[]>();

  see(type: string, pod: KubeObject): void {
    if (!podsResource.isObject(pod)) return;
    const { uid = '' } = pod.metadata;
    const before = this.#heldBy.get(uid) ?? [];
    const now =
      type === 'DELETED'
        ? []
        : (networkStatusOf(pod) ?? []).flatMap((each) => (each.default ? [] : (each.ips ?? [])));
    if (type !== 'DELETED' && before.length > 0 && before.join() !== now.join()) {
      this.problems.push(`${keyOf(pod)} had ${before.join()}, then ${now.join()}`);
    }
    for (const address of before) this.#holders.delete(address);
    for (const address of now) {
      const other = this.#holders.get(address);
      if (other !== undefined) this.problems.push(`${address} of ${keyOf(pod)} was given to ${other}, too`);
      this.#holders.set(address, uid);
    }
    if (before.length === 0) this.given += now.length;
    this.#heldBy.set(uid, now);
  }

  get attached(): number {
    return [...this.#heldBy.values()].filter((ips) => ips.length > 0).length;
  }
}

/** Reads a watch until the signal aborts. */
async function follow(
  server: TestServer,
  of: string,
  signal: AbortSignal,
  see: (type: string, object: KubeObject) => void,
): Promise<void> {
  const stream = await server.client.stream(of, { query: { watch: 'true' }, signal });
  let text = '';
  try {
    for await (const piece of stream.chunks) {
      const lines = `${text}${piece.toString()}`.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines) {
        const event: unknown = JSON.parse(line);
        if (isRecord(event) && isKubeObject(event['object'])) see(String(event['type']), event['object']);
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

async function createPod(server: TestServer, name: string, number: number): Promise<void> {
  // Some have both, some one of the networks.
  const networks = ['wide', 'narrow', 'wide,narrow'][number % 3] ?? '';
  const body = {
    metadata: { name, annotations: { [networksAnnotation]: networks } },
    spec: { nodeName: 'node', containers: [{ name: 'main', image: 'nginx' }] },
  };
  expect((await call(server.client, 'POST', pods, { body })).status).toBe(201);
  await call(server.client, 'PATCH', `${pods}/${name}/status`, {
    contentType: 'application/merge-patch+json',
    body: { status: { phase: 'Running', podIPs: [{ ip: `10.244.0.${(number % 250) + 1}` }] } },
  });
}

test(
  `two controllers at once, killed ${kills} times, give no address twice and leak none`,
  { timeout: 120_000 + kills * 60_000 },
  async () => {
    const server = await startApiServer({ platform: 'openshift', controllers: [] });
    const folder = await mkdtemp(path.join(tmpdir(), 'servicenet-attachments-'));
    const kubeconfig = path.join(folder, 'kubeconfig');
    await writeFile(kubeconfig, server.kubeconfig);
    for (const [name, range] of Object.entries(ranges)) {
      const config = JSON.stringify({ type: 'macvlan', ipam: { type: 'whereabouts', range } });
      const kind = { apiVersion: 'k8s.cni.cncf.io/v1', kind: 'NetworkAttachmentDefinition' };
      await call(
        server.client,
        'POST',
        '/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions',
        {
          body: { ...kind, metadata: { name }, spec: { config } },
        },
      );
    }
    const ledger = new Ledger();
    let writes = 0;
    const stop = new AbortController();
    const following = Promise.all([
      follow(server, pods, stop.signal, (type, pod) => ledger.see(type, pod)),
      follow(server, pools, stop.signal, () => {
        writes++;
      }),
    ]);
    // Without a lease: nothing but the guards of their writes is between them.
    const start = (): { child: ChildProcess; ended: Promise<unknown> } => {
      const flags = ['--kubeconfig', kubeconfig, '--controllers', 'network-attachment-controller'];
      const rest = ['--no-leader-elect', '--metrics-bind-address', '0', '--log-level', 'fatal'];
      const child = spawn(process.execPath, [main, 'controller', ...flags, ...rest], { stdio: 'inherit' });
      return { child, ended: once(child, 'close') };
    };
    const running = [start(), start()];
    const alive: string[] = [];
    let made = 0;
    const make = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        const name = `pod-${made}`;
        alive.push(name);
        await createPod(server, name, made++);
      }
    };
    try {
      await make(12);
      const allAttached = (): Promise<void> =>
        expect.poll(() => ledger.attached, { timeout: 60_000 }).toBe(alive.length);
      for (let kill = 0; kill < kills; kill++) {
        await allAttached();
        // In the middle of what the change of Pods has begun: after 1, 4, 7 … writes.
        const until = writes + 1 + ((kill * 3) % 10);
        const gone = alive.splice(0, 5);
        await Promise.all(
          gone.map((name) => call(server.client, 'DELETE', `${pods}/${name}?gracePeriodSeconds=0`)),
        );
        // One takes the place of a Pod of its name, as in a StatefulSet.
        const [again = ''] = gone;
        alive.push(again);
        await createPod(server, again, made++);
        await make(5);
        await expect.poll(() => writes, { timeout: 60_000, interval: 1 }).toBeGreaterThanOrEqual(until);
        const killed = running.shift();
        killed?.child.kill('SIGKILL');
        await killed?.ended;
        running.push(start());
      }
      await allAttached();
      // Each instance looks for what is left when it starts.
      running.push(start());
      const found = async (): Promise<unknown> => (await auditClusterAttachments(server.client))?.findings;
      await expect.poll(found, { timeout: 60_000 }).toEqual([]);
      expect(ledger.problems).toEqual([]);
      // Else the test has not tested what it says.
      expect(ledger.given).toBeGreaterThan(12 + kills * 5);
      console.log(`${kills} kills: ${ledger.given} addresses given, none twice, none leaked`);
    } finally {
      for (const { child, ended } of running) {
        child.kill('SIGKILL');
        await ended;
      }
      stop.abort();
      await following;
      await server.stop();
      await rm(folder, { recursive: true });
    }
  },
);
