/** The part of e2e tests' `TestJig` that waits for a load balancer; ours is the provider. */
import { expect } from 'vitest';
import { offerAddresses } from '../../src/commands/default-pool.ts';
import type { JsonRecord } from '../../src/objects/json.ts';
import { at, conditionStatus, listAt, numberAt, recordAt, textAt } from '../../src/objects/json.ts';
import { StatusError } from '../../src/objects/status.ts';
import { startLoadBalancer } from './balanced-server.ts';
import { E2eCluster, poll } from './e2e-cluster.ts';
import { agnhostContainer, ServiceJig } from './service-jig.ts';

/** A cluster with a load balancer and addresses for it. */
export async function startBalancedCluster(): Promise<{ cluster: E2eCluster; stop: () => Promise<void> }> {
  const cluster = await E2eCluster.start();
  await offerAddresses(cluster.server.client, ['192.0.2.0/25']);
  const running = startLoadBalancer(cluster.server.client);
  const stop = async (): Promise<void> => {
    await running.stop();
    await cluster.stop();
  };
  return { cluster, stop };
}

const finalizer = 'service.kubernetes.io/load-balancer-cleanup';

export class LoadBalancerJig extends ServiceJig {
  /** `CreateLoadBalancerService`. */
  async createLoadBalancer(spec: JsonRecord = {}): Promise<JsonRecord> {
    await this.create({ type: 'LoadBalancer', sessionAffinity: 'None', ...spec });
    return this.balanced();
  }

  /** `CreateServiceSpec`, and the test's changes of it. */
  async createPlain(spec: JsonRecord = {}): Promise<JsonRecord> {
    const ports = [{ port: 80, name: 'http', protocol: 'TCP' }];
    return this.cluster.resource('services', this.namespace).create({
      metadata: { name: this.name },
      spec: { selector: this.labels, ports, ...spec },
    });
  }

  /** The Deployment that tests of load balancers put behind a Service. */
  async runNetexec(spec: JsonRecord = {}, name = this.name): Promise<void> {
    const container = agnhostContainer('agnhost', [], 'netexec', '--http-port=80', '--udp-port=80');
    const readinessProbe = { periodSeconds: 3, httpGet: { port: 80, path: '/hostName' } };
    const template = { containers: [{ ...container, readinessProbe }], spec };
    await this.run(1, template, name);
  }

  /** `Run` of the jig: a ReplicationController behind the Service, once its Pods are there and ready. */
  async runController(replicas: number, podSpec: JsonRecord = {}): Promise<void> {
    const { cluster, namespace, name, labels } = this;
    const readinessProbe = { periodSeconds: 3, httpGet: { port: 80, path: '/hostName' } };
    const container = agnhostContainer('netexec', [], 'netexec', '--http-port=80', '--udp-port=80');
    const containers = [{ ...container, readinessProbe }];
    await cluster.resource('replicationControllers', namespace).create({
      metadata: { namespace, name, labels },
      spec: {
        ...{ replicas, selector: labels },
        template: {
          metadata: { labels },
          spec: { containers, terminationGracePeriodSeconds: 3, ...podSpec },
        },
      },
    });
    const labelSelector = Object.entries(labels)
      .map(([key, value]) => `${key}=${String(value)}`)
      .join();
    const pods = cluster.resource('pods', namespace);
    await poll(async () => {
      const found = listAt(await pods.list({ labelSelector }), 'items');
      return found.length === replicas && found.every(isRunningAndReady);
    });
  }

  /** `WaitForLoadBalancer`. */
  async balanced(): Promise<JsonRecord> {
    return this.until((service) => addressOf(service) !== '');
  }

  /** `WaitForLoadBalancerDestroy`. */
  async unbalanced(): Promise<JsonRecord> {
    return this.until((service) => listAt(service, 'status', 'loadBalancer', 'ingress').length === 0);
  }

  async until(condition: (service: JsonRecord) => boolean): Promise<JsonRecord> {
    let service: JsonRecord = {};
    const services = this.cluster.resource('services', this.namespace);
    await poll(async () => condition((service = await services.get(this.name))));
    return service;
  }

  /** `ChangeServiceType`. */
  async changeType(type: string): Promise<JsonRecord> {
    await this.update((spec) => ({
      ...{ ...spec, type },
      ports: listAt(spec, 'ports').map((port) => ({ ...recordAt(port), nodePort: 0 })),
    }));
    return type === 'LoadBalancer' ? this.balanced() : this.unbalanced();
  }

  /** `WaitForServiceUpdatedWithFinalizer`. */
  async finalizerIs(wanted: boolean): Promise<void> {
    await this.until((service) => listAt(service, 'metadata', 'finalizers').includes(finalizer) === wanted);
  }

  /** `WaitForServiceDeletedWithFinalizer`: deletes it, until it cannot be found. */
  async deleteAndWait(): Promise<void> {
    const services = this.cluster.resource('services', this.namespace);
    await services.delete(this.name);
    await poll(async () => {
      try {
        await services.get(this.name);
        return false;
      } catch (error) {
        expect(error).toBeInstanceOf(StatusError);
        expect(error).toMatchObject({ reason: 'NotFound' });
        return true;
      }
    });
  }
}

function isRunningAndReady(pod: unknown): boolean {
  const ready = conditionStatus(listAt(pod, 'status', 'conditions'), 'Ready');
  return textAt(pod, 'status', 'phase') === 'Running' && ready === 'True';
}

/** `GetIngressPoint` of the first. */
export function addressOf(service: JsonRecord): string {
  return textAt(listAt(service, 'status', 'loadBalancer', 'ingress')[0], 'ip');
}

export function nodePortOf(service: JsonRecord): number {
  return numberAt(listAt(service, 'spec', 'ports')[0], 'nodePort');
}

export function healthCheckNodePortOf(service: JsonRecord): unknown {
  return at(service, 'spec', 'healthCheckNodePort');
}
