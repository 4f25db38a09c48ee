import type { Clock, Timer } from '../../client/clock.ts';
import type { Probe } from '../../objects/types/core.generated.ts';
import type { ProbeResult } from './container-runtime.ts';
import { countAnswer, isDue, periodOf, type ProbeKind, timeoutOf, unasked } from './plan-probes.ts';

export interface ProbeWorkerOptions {
  readonly clock: Clock;
  readonly kind: ProbeKind;
  readonly probe: Probe;
  /** Monotonic milliseconds when the container started. */
  readonly startedAt: number;
  /** Rejects or answers; the signal aborts at the timeout of the probe. */
  readonly ask: (signal: AbortSignal) => Promise<ProbeResult>;
  /** True when the container's startup probe has succeeded, or it has none. */
  readonly hasStarted: () => boolean;
  /** The verdict has changed. */
  readonly decided: (verdict: boolean) => void;
  /** A probe has failed. */
  readonly refused: (output: string) => void;
}

/** Runs one probe of one container, from its start to its end (pkg/kubelet/prober/worker.go). */
export class ProbeWorker {
  readonly #options: ProbeWorkerOptions;
  readonly #stopped = new AbortController();
  #count = unasked;
  #timer: Timer | undefined;
  #isAsking = false;

  constructor(options: ProbeWorkerOptions) {
    this.#options = options;
    this.#tick();
  }

  stop(): void {
    this.#stopped.abort();
    this.#timer?.cancel();
  }

  /** Probes now, unless a probe is running: a readiness probe does so when its container has started. */
  trigger(): void {
    this.#timer?.cancel();
    if (!this.#isAsking) this.#tick();
  }

  #tick(): void {
    if (this.#stopped.signal.aborted) return;
    const { clock, kind, probe, startedAt, hasStarted } = this.#options;
    this.#timer = clock.after(periodOf(probe), () => this.#tick());
    // A probe that takes longer than its period is not started again meanwhile.
    if (this.#isAsking || !isDue(kind, probe, clock.monotonic() - startedAt, hasStarted())) return;
    this.#isAsking = true;
    this.#ask().then(
      (result) => this.#hear(result),
      (error: unknown) => this.#hear({ success: false, output: String(error) }),
    );
  }

  async #ask(): Promise<ProbeResult> {
    const { clock, probe, ask } = this.#options;
    const limit = new AbortController();
    const stop = (): void => limit.abort();
    this.#stopped.signal.addEventListener('abort', stop, { once: true });
    const timer = clock.after(timeoutOf(probe), stop);
    try {
      return await ask(limit.signal);
    } finally {
      timer.cancel();
      this.#stopped.signal.removeEventListener('abort', stop);
    }
  }

  #hear({ success, output }: ProbeResult): void {
    this.#isAsking = false;
    if (this.#stopped.signal.aborted) return;
    const { probe, decided, refused } = this.#options;
    const before = this.#count;
    this.#count = countAnswer(before, probe, success);
    if (!success) refused(output);
    const { verdict } = this.#count;
    if (verdict !== undefined && verdict !== before.verdict) decided(verdict);
  }
}
