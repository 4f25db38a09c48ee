import type { Logger } from 'pino';
import type { EventRecorder } from '../client/events/events.ts';
import type { ServiceChange } from '../network/forwarding/forwarding-planner.ts';
import type { Service } from '../objects/types/core.generated.ts';
import type { ObjectKey } from '../objects/key.ts';

/** Reports problems of Services and slices to users. */
export class ProblemReports {
  readonly #log: Logger;
  readonly #events: EventRecorder;
  readonly #service: (key: ObjectKey) => Service | undefined;

  /** @param service finds the Service of a key. */
  constructor(log: Logger, events: EventRecorder, service: (key: ObjectKey) => Service | undefined) {
    this.#log = log;
    this.#events = events;
    this.#service = service;
  }

  /** Logs what has come, each once: by its object's key, and in an Event on the Service. */
  report(changes: readonly ServiceChange[]): void {
    for (const { key: service, before, after } of changes) {
      const known = new Set(before?.problems.map(({ message }) => message));
      for (const { kind, key, reason, message } of after?.problems ?? []) {
        if (known.has(message)) continue;
        this.#log.warn({ kind, key, reason }, message);
        this.warn(service, reason, kind === 'Service' ? message : `${kind} ${key}: ${message}`);
      }
    }
  }

  /** Records a Warning Event on a Service, if there is one of the key. */
  warn(key: ObjectKey, reason: string, message: string): void {
    const service = this.#service(key);
    if (service === undefined) return;
    this.#events.event({ ...service, apiVersion: 'v1', kind: 'Service' }, 'Warning', reason, message);
  }
}
