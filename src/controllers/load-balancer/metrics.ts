import { Counter, Gauge } from 'prom-client';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { FamilyUsage } from '../../objects/types/servicenet.ts';
import type { LoadBalancerReason } from './reasons.ts';

/** Metrics of the load balancer. */
export class LoadBalancerMetrics {
  readonly #addresses: Gauge<'pool' | 'family' | 'state'>;
  readonly #transitions: Counter<'reason'>;
  readonly #waiting: Gauge;

  constructor({ registry }: Metrics) {
    const registers = [registry];
    this.#addresses = new Gauge({
      name: 'servicenet_pool_addresses',
      help: 'Addresses of a pool, by family and state: used, free, quarantined.',
      labelNames: ['pool', 'family', 'state'],
      registers,
    });
    this.#transitions = new Counter({
      name: 'servicenet_load_balancer_transitions_total',
      help: "Changes of the reason in a Service's condition, by the new reason.",
      labelNames: ['reason'],
      registers,
    });
    this.#waiting = new Gauge({
      name: 'servicenet_load_balancer_waiting_services',
      help: 'Services that are waiting for an address.',
      registers,
    });
  }

  transition(reason: LoadBalancerReason): void {
    this.#transitions.inc({ reason });
  }

  waiting(count: number): void {
    this.#waiting.set(count);
  }

  usage(pool: string, family: string, usage: FamilyUsage): void {
    for (const state of addressStates) {
      this.#addresses.set({ pool, family, state }, usage[state]);
    }
  }

  forgetPool(pool: string): void {
    for (const family of ['IPv4', 'IPv6']) {
      for (const state of addressStates) this.#addresses.remove({ pool, family, state });
    }
  }
}

const addressStates = ['used', 'free', 'quarantined'] as const;
