import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { Clients } from '../../src/client/resource-client.ts';
import { createTransport } from '../../src/client/connect.ts';
import { isAlreadyExists, isNotFound } from '../../src/client/errors.ts';
import type { Draft, ResourceClient } from '../../src/client/resource-client.ts';
import { namespaces, nodes, serviceCIDRs, services, type ResourceType } from '../../src/client/resources.ts';
import type { Transport } from '../../src/client/transport.ts';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import type { KubeObject } from '../../src/objects/meta.ts';
import { listAt } from '../../src/objects/json.ts';
import type { IPFamily } from '../../src/objects/address.ts';
import type { Service, ServiceSpec } from '../../src/objects/types/core.generated.ts';
import { type Controllers, DeployedControllers, OwnControllers } from './controllers.ts';
import { onlyNode, TestPods } from './pods.ts';
import type { TargetChoice } from './targets/chosen.ts';
import type { Target } from './targets/target.ts';

/** What a cluster may be able to do; tests that need something else are skipped, with its name. */
export type Ability =
  /** Services get addresses of both families. */
  | 'dual-stack'
  /** Services get addresses of one family only. */
  | 'single-stack'
  /** Pods that are created become ready by themselves. */
  | 'runs-pods'
  /** Nothing runs Pods: a test may make as many as it likes, and writes their status. */
  | 'pods-by-hand';

/** An AddressPool as this suite makes them. */
interface AddressPool extends KubeObject {
  spec: { addresses: string[]; autoAssign?: boolean; sharing?: string };
  status?: JsonRecord;
}

export const addressPools: ResourceType<AddressPool> = {
  group: 'servicenet.dev',
  version: 'v1alpha1',
  plural: 'addresspools',
  kind: 'AddressPool',
  namespaced: false,
  isObject: (object): object is AddressPool => isRecord(Reflect.get(object, 'spec')),
};

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const definitionName = 'addresspools.servicenet.dev';

/** How long a condition may take, in milliseconds. */
const timeoutMs = 60_000;

/** The cluster under test, as a client with a kubeconfig sees it. */
export class Cluster {
  readonly target: Target;
  readonly client: Transport;
  readonly controllers: Controllers;
  readonly abilities: ReadonlySet<Ability>;
  /** The families of its Services, primary first. */
  readonly families: readonly IPFamily[];
  readonly pods: TestPods;
  readonly #clients: Clients;
  readonly #pools: string[] = [];
  readonly #namespaces: string[] = [];
  /** The suite made it, so the suite removes it. */
  #madeDefinition = false;

  private constructor(target: Target, client: Transport, families: readonly IPFamily[], hasNodes: boolean) {
    this.target = target;
    this.client = client;
    this.families = families;
    this.#clients = new Clients(client);
    this.controllers =
      target.controllers === 'deployed'
        ? new DeployedControllers(client)
        : new OwnControllers(target, client);
    const abilities: Ability[] = [];
    abilities.push(families.length === 2 ? 'dual-stack' : 'single-stack');
    abilities.push(hasNodes ? 'runs-pods' : 'pods-by-hand');
    this.abilities = new Set(abilities);
    this.pods = new TestPods(client, this.#clients, families, hasNodes);
  }

  static async open(choice: TargetChoice): Promise<Cluster> {
    const target = await choice.start();
    let cluster: Cluster | undefined;
    try {
      const client = await createTransport({ kind: 'kubeconfig', path: target.kubeconfig });
      const clients = new Clients(client);
      const { items: known } = await clients.for(nodes).list();
      cluster = new Cluster(target, client, await familiesOf(clients), known.length > 0);
      await cluster.#define();
      if (!cluster.abilities.has('runs-pods')) {
        await clients.for(nodes).create({ metadata: { name: onlyNode }, spec: {}, status: {} });
      }
      await cluster.controllers.start();
      return cluster;
    } catch (error) {
      await (cluster === undefined ? target.stop() : cluster.close());
      throw error;
    }
  }

  /** Removes what the suite has made, while there are controllers: Services wait for them to take their finalizers. */
  async close(): Promise<void> {
    try {
      await this.#removeServices();
      for (const name of this.#namespaces) await this.#forget(this.#clients.for(namespaces), name);
      if (!this.abilities.has('runs-pods')) await this.#forget(this.#clients.for(nodes), onlyNode);
      for (const name of this.#pools) await this.#forget(this.#clients.for(addressPools), name);
    } finally {
      await this.controllers.end();
      try {
        if (this.#madeDefinition) await this.client.request('DELETE', `${definitions}/${definitionName}`);
      } finally {
        await this.client.close();
        await this.target.stop();
      }
    }
  }

  for<T extends KubeObject>(resource: ResourceType<T>): ResourceClient<T> {
    return this.#clients.for(resource);
  }

  /** A namespace of a test's own, where Pods can be made. */
  async namespace(): Promise<string> {
    const { metadata } = await this.#clients
      .for(namespaces)
      .create({ metadata: { generateName: 'servicenet-e2e-' } });
    const name = metadata.name ?? '';
    this.#namespaces.push(name);
    if (this.abilities.has('runs-pods')) {
      const account = `/api/v1/namespaces/${name}/serviceaccounts/default`;
      await this.until(
        () => isThere(this.client.request('GET', account)),
        (found) => found,
      );
    }
    return name;
  }

  /** A pool that only Services get addresses of that name it, and its name. */
  async pool(spec: Partial<AddressPool['spec']> & { addresses: string[] }): Promise<string> {
    const draft: Draft<AddressPool> = {
      metadata: { generateName: 'servicenet-e2e-' },
      spec: { autoAssign: false, ...spec },
    };
    const { metadata } = await this.#clients.for(addressPools).create(draft);
    const name = metadata.name ?? '';
    this.#pools.push(name);
    return name;
  }

  service(
    namespace: string,
    name: string,
    spec: Partial<ServiceSpec>,
    annotations: Record<string, string> = {},
  ): Promise<Service> {
    return this.#clients.for(services).create({
      metadata: { namespace, name, annotations },
      spec: { ports: [{ port: 80 }], ...spec },
    });
  }

  /** Addresses for a pool, of every family of the cluster: `count` from the given one, below 200. */
  addresses(first: number, count: number): string[] {
    return this.families.map((family) => {
      const prefix = family === 'IPv4' ? '198.51.100.' : '2001:db8:e2e::';
      const text = (value: number): string => `${prefix}${family === 'IPv4' ? value : value.toString(16)}`;
      return `${text(first)}-${text(first + count - 1)}`;
    });
  }

  /** Reads a Service until it is as wanted, and answers it. */
  untilService(namespace: string, name: string, wanted: (service: Service) => boolean): Promise<Service> {
    return this.until(() => this.#clients.for(services).get(namespace, name), wanted);
  }

  /**
   * Reads something until it is as wanted, soon at first and then every 200 ms, and answers it.
   *
   * @throws {Error} with the last look, when it takes long.
   */
  async until<T>(read: () => Promise<T>, wanted: (value: T) => boolean): Promise<T> {
    const deadline = Date.now() + timeoutMs;
    for (let pause = 20; ; pause = Math.min(1.5 * pause, 200)) {
      const value = await read();
      if (wanted(value)) return value;
      if (Date.now() > deadline) throw new Error(`never came: ${JSON.stringify(value)}`);
      await sleep(pause);
    }
  }

  /** The kind AddressPool, where it is not there yet. */
  async #define(): Promise<void> {
    const body: unknown = parse(readFileSync('deploy/crds/servicenet.dev_addresspools.yaml', 'utf8'));
    try {
      await this.client.request('POST', definitions, { body });
      this.#madeDefinition = true;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    await this.until(
      () => isThere(this.#clients.for(addressPools).list()),
      (served) => served,
    );
  }

  async #removeServices(): Promise<void> {
    const client = this.#clients.for(services);
    for (const namespace of this.#namespaces) {
      await this.client.request('DELETE', client.path(namespace));
      await this.until(
        async () => (await client.list({ namespace })).items,
        (left) => left.length === 0,
      );
    }
  }

  async #forget<T extends KubeObject>(client: ResourceClient<T>, name: string): Promise<void> {
    await isThere(client.delete('', name));
  }
}

/** The families of Services, primary first: of the ServiceCIDR, or before Kubernetes 1.33 of a Service that takes all. */
async function familiesOf(clients: Clients): Promise<readonly IPFamily[]> {
  try {
    const { spec } = await clients.for(serviceCIDRs).get('', 'kubernetes');
    const texts = listAt(spec, 'cidrs').map(String);
    return texts.map((text) => (text.includes(':') ? 'IPv6' : 'IPv4'));
  } catch (error) {
    if (!isNotFound(error)) throw error;
    const metadata = { namespace: 'default', generateName: 'servicenet-e2e-' };
    const draft = { metadata, spec: { ipFamilyPolicy: 'PreferDualStack', ports: [{ port: 80 }] } };
    const { spec } = await clients.for(services).create(draft, { dryRun: true });
    return (spec.ipFamilies ?? []).map((family) => (family === 'IPv6' ? 'IPv6' : 'IPv4'));
  }
}

/** False for what is not found. */
async function isThere(answer: Promise<unknown>): Promise<boolean> {
  try {
    await answer;
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}
