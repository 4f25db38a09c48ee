import { expect } from 'vitest';
import { pods as podsResource } from '../../../src/client/resources.ts';
import { auditClusterAttachments } from '../../../src/platforms/cni/cluster-audit.ts';
import { networkStatusOf } from '../../../src/network/attachments/network-status.ts';
import { networksAnnotation } from '../../../src/network/attachments/attachments.ts';
import { isRecord } from '../../../src/objects/json.ts';
import { keyOf, type KubeObject, isKubeObject } from '../../../src/objects/meta.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { call } from '../../support/test-server.ts';

/** The path of the Pods. */
export const pods = '/api/v1/namespaces/default/pods';
/** The path of the pools. */
export const pools = '/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/ippools';

/** Two ranges that have 62 addresses in common. */
const ranges = { wide: '10.70.0.0/25', narrow: '10.70.0.0/26' };

/** Who was given which address, in the order in which the server stored it. */
export class Ledger {
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

/** What the audit finds, a line each. */
export async function findingsOf(server: TestServer): Promise<string> {
  const audit = await auditClusterAttachments(server.client);
  return (audit?.findings ?? []).map(({ key, message }) => `${key}: ${message}`).join('\n');
}

/** Reads a watch until the signal aborts. */
export async function follow(
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

/** Makes a Pod of a node that nothing simulates, with an address of the cluster's network. */
export async function createPod(server: TestServer, name: string, number: number): Promise<void> {
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

/** Makes a network of each range. */
export async function defineNetworks(server: TestServer): Promise<void> {
  for (const [name, range] of Object.entries(ranges)) {
    const config = JSON.stringify({ type: 'macvlan', ipam: { type: 'whereabouts', range } });
    const kind = { apiVersion: 'k8s.cni.cncf.io/v1', kind: 'NetworkAttachmentDefinition' };
    const path = '/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions';
    await call(server.client, 'POST', path, { body: { ...kind, metadata: { name }, spec: { config } } });
  }
}
