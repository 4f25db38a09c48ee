import type { AllocationReason } from '../../objects/reasons.ts';
import { Counter, Gauge } from 'prom-client';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { AllocationState } from './allocation-state.ts';

/** Metrics of allocation. */
export class AllocationMetrics {
  readonly #steps: Counter<'step'>;
  readonly #problems: Counter<'reason'>;
  readonly #findings: Gauge<'reason'>;

  constructor(metrics: Metrics, allocations: AllocationState) {
    const registers = [metrics.registry];
    const ranges = { labelNames: ['range'] as const, registers };
    const used = new Gauge({
      name: 'servicenet_allocator_allocated',
      help: 'Addresses or node ports of a range that are in use.',
      ...ranges,
    });
    const free = new Gauge({
      name: 'servicenet_allocator_available',
      help: 'Addresses or node ports of a range that are free.',
      ...ranges,
    });
    metrics.beforeScrape(() => {
      used.reset();
      free.reset();
      for (const range of allocations.ranges()) {
        used.set({ range: range.range }, range.used);
        free.set({ range: range.range }, range.free);
      }
    });
    this.#steps = new Counter({
      name: 'servicenet_allocation_steps_total',
      help: 'Writes of the allocation, by step: claim, retreat, write.',
      labelNames: ['step'],
      registers,
    });
    this.#problems = new Counter({
      name: 'servicenet_allocation_problems_total',
      help: 'Problems reported to users, by reason.',
      labelNames: ['reason'],
      registers,
    });
    this.#findings = new Gauge({
      name: 'servicenet_allocation_findings',
      help: 'Current findings of the audit, by reason.',
      labelNames: ['reason'],
      registers,
    });
  }

  countStep(step: 'claim' | 'retreat' | 'write'): void {
    this.#steps.inc({ step });
  }

  countProblem(reason: AllocationReason): void {
    this.#problems.inc({ reason });
  }

  setFindings(reasons: Iterable<AllocationReason>): void {
    this.#findings.reset();
    for (const reason of reasons) this.#findings.inc({ reason });
  }
}
