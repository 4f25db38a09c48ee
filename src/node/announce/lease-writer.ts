import type { Clock } from '../../client/clock.ts';
import { isNotFound } from '../../client/errors.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import {
  announcerLabel,
  announcerLeaseName,
  reportAnnotation,
} from '../../network/announcing/announcer-lease.ts';
import type { Lease } from '../../objects/types/coordination.generated.ts';
import { formatMicroTime } from '../../objects/time.ts';

/** Writes to the API server: at most so many a second in the long run, and so many at once. */
const writesPerSecond = 2;
const burst = 4;

/** Milliseconds until a write is given up: the next one may find another connection. */
const writeTimeout = 1000;

/** Writes the Lease of this node's agent. One call at a time. */
export class LeaseWriter {
  readonly #client: ResourceClient<Lease>;
  readonly #namespace: string;
  readonly #node: string;
  readonly #clock: Clock;
  #tokens = burst;
  #countedAt: number;
  #writtenReport: string | undefined;

  constructor(client: ResourceClient<Lease>, namespace: string, node: string, clock: Clock) {
    this.#client = client;
    this.#namespace = namespace;
    this.#node = node;
    this.#clock = clock;
    this.#countedAt = clock.monotonic();
  }

  /** The report that the Lease has. */
  get writtenReport(): string | undefined {
    return this.#writtenReport;
  }

  /** Milliseconds until the next write keeps the limit. */
  get delay(): number {
    this.#count();
    return this.#tokens >= 1 ? 0 : ((1 - this.#tokens) * 1000) / writesPerSecond;
  }

  /** Renews the Lease, with the report where it is new. @throws what the API server answers. */
  async renew(report: string, signal?: AbortSignal): Promise<void> {
    await this.#write(this.#node, report, signal);
  }

  /** Gives the Lease back: others take over at once what this node announces. @throws as {@link renew}. */
  async giveBack(report: string): Promise<void> {
    await this.#write('', report);
  }

  async #write(holderIdentity: string, report: string, signal?: AbortSignal): Promise<void> {
    this.#count();
    this.#tokens -= 1;
    const name = announcerLeaseName(this.#node);
    const spec = {
      holderIdentity,
      leaseDurationSeconds: 2,
      renewTime: formatMicroTime(this.#clock.now()),
    };
    const isNew = report !== this.#writtenReport;
    const metadata = {
      labels: { [announcerLabel]: 'true' },
      annotations: { [reportAnnotation]: report },
    };
    const options = { timeout: writeTimeout, ...(signal === undefined ? {} : { signal }) };
    try {
      await this.#client.mergePatch(this.#namespace, name, { spec, ...(isNew ? { metadata } : {}) }, options);
    } catch (error) {
      if (!isNotFound(error)) {
        // It may have been written.
        this.#writtenReport = undefined;
        throw error;
      }
      await this.#client.create(
        { metadata: { ...metadata, name, namespace: this.#namespace }, spec },
        options,
      );
    }
    this.#writtenReport = report;
  }

  #count(): void {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#countedAt) * writesPerSecond) / 1000);
    this.#countedAt = now;
  }
}
